// defect: a linked list is walked in the random order of its nodes in memory
// kinds: scattered-memory-walk
// guilty: sim::Agenda::Due
#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include "loop.hpp"

namespace sim {
struct Event {
    double due;
    double period;
    Event *next;
    char payload[104];
};

class Agenda {
public:
    Agenda(int number, bool slow) : events_(new Event[number]) {
        std::vector<int> order(number);
        std::iota(order.begin(), order.end(), 0);
        if (slow) std::shuffle(order.begin(), order.end(), std::mt19937(7));
        Event **link = &first_;
        for (int i : order) {
            events_[i] = {i * 1e-3, 1.0 + i % 7, nullptr, {}};
            *link = &events_[i];
            link = &events_[i].next;
        }
        *link = nullptr;
    }
    int Due(double now) {
        int due = 0;
        for (Event *event = first_; event; event = event->next) {
            if (event->due <= now) {
                event->due += event->period;
                ++due;
            }
        }
        return due;
    }

private:
    std::unique_ptr<Event[]> events_;
    Event *first_ = nullptr;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Agenda agenda(200000, sim::IsSlow(argc, argv));
    sim::Bodies bodies(2000);
    sim::Run([&](long step) {
        sim::sink = agenda.Due(step * 0.01);
        bodies.Advance(100);
    });
}
