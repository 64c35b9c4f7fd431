// defect: a trace is flushed after each record
// kinds: small-writes-each-step
// guilty: sim::Trace::Record
#include <cstdint>
#include "loop.hpp"

namespace sim {
class Trace {
public:
    explicit Trace(bool slow) : file_(std::tmpfile()), slow_(slow) {}
    void Record(std::uint32_t body, float energy) {
        std::uint32_t record[2] = {body, std::uint32_t(energy)};
        std::fwrite(record, sizeof record, 1, file_);
        if (slow_) std::fflush(file_);
        if (++records_ % 100000 == 0) std::rewind(file_);
    }

private:
    std::FILE *file_;
    bool slow_;
    long records_ = 0;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Trace trace(sim::IsSlow(argc, argv));
    sim::Bodies bodies(2000);
    sim::Run([&](long) {
        bodies.Advance(15);
        for (int body = 0; body < 80; ++body) trace.Record(body, bodies.at(body) * 10);
    });
}
