// defect: the system of poisoned fish goes through all entities in each step and asks each for its component, though ten of them have one
// kinds: full-scan-each-step, list-search, called-very-often
// guilty: reef::Registry::Get, reef::Registry::Each, reef::Poison::Update, reef::Registry::Each<reef::Poisoned>
// build: -O2 -g
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <typeindex>
#include <unordered_map>
#include <vector>

namespace reef {
using Entity = uint32_t;
enum class Type : uint8_t { Position, Velocity, Poisoned, Name };
struct Component { virtual ~Component() = default; };
struct Position : Component { static constexpr Type type = Type::Position; double x = 0, y = 0, z = 0; };
struct Velocity : Component { static constexpr Type type = Type::Velocity; double x = 0, y = 0, z = 0; };
struct Poisoned : Component { static constexpr Type type = Type::Poisoned; double dose = 1; };

class Registry {
public:
    Entity Create() { entities_.emplace_back(); return Entity(entities_.size() - 1); }
    template <class T> T &Add(Entity entity) {
        auto component = std::make_unique<T>();
        T &reference = *component;
        entities_[entity].components.emplace_back(T::type, std::move(component));
        if (T::type == Type::Poisoned) poisoned_.push_back(entity);
        return reference;
    }
    template <class T> T *Get(Entity entity) {
        for (auto &[type, component] : entities_[entity].components)
            if (type == T::type) return static_cast<T *>(component.get());
        return nullptr;
    }
    template <class T> void Each(const std::function<void(Entity, T &)> &visit) {
        for (Entity entity = 0; entity < entities_.size(); ++entity)
            if (T *found = Get<T>(entity)) visit(entity, *found);
    }
    const std::vector<Entity> &Poisoned() const { return poisoned_; }
    size_t Size() const { return entities_.size(); }
private:
    struct Row { std::vector<std::pair<Type, std::unique_ptr<Component>>> components; };
    std::vector<Row> entities_;
    std::vector<Entity> poisoned_;
};

class Swim {
public:
    explicit Swim(Registry &registry) {
        for (Entity entity = 0; entity < registry.Size(); ++entity)
            if (auto *velocity = registry.Get<Velocity>(entity)) view_.emplace_back(registry.Get<Position>(entity), velocity);
    }
    void Update(double time, double dt) {
        for (auto &[position, velocity] : view_) {
            double turn = std::sin(time + position->x * 0.1);
            velocity->x += (turn - 0.1 * velocity->x) * dt;
            velocity->y += (std::cos(time) * turn - 0.1 * velocity->y) * dt;
            position->x += velocity->x * dt; position->y += velocity->y * dt; position->z += velocity->z * dt;
        }
    }
private:
    std::vector<std::pair<Position *, Velocity *>> view_;
};

class Poison {
public:
    bool scan = true;
    void Update(Registry &registry, double dt) {
        auto heal = [&](Entity, Poisoned &one) { one.dose *= 1 - 0.01 * dt; total += one.dose; };
        if (scan) return registry.Each<Poisoned>(heal);
        for (Entity entity : registry.Poisoned()) heal(entity, *registry.Get<Poisoned>(entity));
    }
    double total = 0;
};
} // namespace reef

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    reef::Registry registry;
    for (int i = 0; i < 12000; ++i) {
        auto entity = registry.Create();
        registry.Add<reef::Position>(entity).x = i % 100;
        if (i % 6 == 0) registry.Add<reef::Velocity>(entity).z = 0.01;
        if (i % 1200 == 0) registry.Add<reef::Poisoned>(entity);
    }
    reef::Swim swim(registry);
    reef::Poison poison;
    poison.scan = slow;
    double time = 0;
    for (long step = 0; step != steps; ++step, time += 0.001) {
        swim.Update(time, 0.001);
        poison.Update(registry, 0.001);
    }
    std::printf("%g\n", poison.total);
}
