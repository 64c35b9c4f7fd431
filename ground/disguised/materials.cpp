// defect: the material of each contact is found by its name in two maps
// kinds: text-keys-each-step
// guilty: sim::Materials::Friction, sim::Contacts::Solve
#include <map>
#include <string>
#include <unordered_map>
#include "loop.hpp"

namespace sim {
class Materials {
public:
    Materials() {
        for (int library = 0; library < 6; ++library)
            for (int i = 0; i < 40; ++i)
                of_library_["materials/library_" + std::to_string(library)]["surface_with_coating_" + std::to_string(i)] = 0.1 + 0.01 * i;
    }
    double Friction(const std::string &library, const std::string &surface) const { return of_library_.at(library).at(surface); }

private:
    std::map<std::string, std::unordered_map<std::string, double>> of_library_;
};

class Contacts {
public:
    Contacts(const Materials &materials, int number, bool slow) : materials_(materials), slow_(slow) {
        for (int i = 0; i < number; ++i) {
            contacts_.push_back({"materials/library_" + std::to_string(i % 6), "surface_with_coating_" + std::to_string(i % 40), 0, 0.01 * i});
            contacts_.back().friction = materials.Friction(contacts_.back().library, contacts_.back().surface);
        }
    }
    void Solve() {
        double sum = 0;
        for (Contact &contact : contacts_) {
            double friction = slow_ ? materials_.Friction(contact.library, contact.surface) : contact.friction;
            contact.force = 0.9 * contact.force + friction * 0.1;
            sum += contact.force;
        }
        sink = sum;
    }

private:
    struct Contact {
        std::string library, surface;
        double friction, force;
    };
    const Materials &materials_;
    std::vector<Contact> contacts_;
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Materials materials;
    sim::Contacts contacts(materials, 600, sim::IsSlow(argc, argv));
    sim::Bodies bodies(2000);
    sim::Run([&](long) {
        contacts.Solve();
        bodies.Advance(8);
    });
}
