// defect: each step asks the disk whether an asset has changed
// kinds: file-state-each-step
// guilty: sim::Assets::Changed, sim::Assets::Refresh
#include <filesystem>
#include <fstream>
#include "loop.hpp"

namespace sim {
class Assets {
public:
    explicit Assets(bool slow) : slow_(slow) {
        auto folder = std::filesystem::temp_directory_path() / "disguised-assets";
        std::filesystem::create_directories(folder);
        for (int i = 0; i < 20; ++i) {
            paths_.push_back(folder / ("mesh_" + std::to_string(i) + ".dae"));
            std::ofstream(paths_.back()) << "mesh";
        }
        times_.resize(paths_.size());
    }
    __attribute__((noinline)) bool Changed(int i) { return std::filesystem::last_write_time(paths_[i]) != times_[i]; }
    __attribute__((noinline)) int Refresh(long step) {
        if (!slow_ && step % 1000) return 0;
        int changed = 0;
        for (std::size_t i = 0; i < paths_.size(); ++i) changed += Changed(i);
        return changed;
    }

private:
    std::vector<std::filesystem::path> paths_;
    std::vector<std::filesystem::file_time_type> times_;
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Assets assets(sim::IsSlow(argc, argv));
    sim::Bodies bodies(2000);
    sim::Run([&](long step) {
        bodies.Advance(8);
        sim::sink = assets.Refresh(step);
    });
}
