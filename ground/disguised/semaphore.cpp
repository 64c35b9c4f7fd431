// defect: markers for a viewer and a compressed depth image are made and published in each cycle, though nobody subscribes to them
// kinds: no-consumer, encoding-in-steps, allocations-each-step, values-through-text
// guilty: semaphore::Perception::PublishMarkers, semaphore::Perception::PublishDepth, semaphore::Squeeze, semaphore::Perception::Publish, semaphore::MakeMarkers
// gain: 38
// build: -O2 -g
#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace semaphore {

using Bytes = std::vector<uint8_t>;
using Message = std::shared_ptr<const Bytes>;

/// Topics within the process. Each subscriber has a queue of its own.
class Bus {
public:
    struct Queue {
        std::mutex mutex;
        std::condition_variable filled;
        std::deque<Message> messages;
        bool ended = false;
        void Put(Message message) {
            {
                std::lock_guard lock(mutex);
                messages.push_back(std::move(message));
                if (messages.size() > 4) messages.pop_front();
            }
            filled.notify_one();
        }
        Message Take() {
            std::unique_lock lock(mutex);
            filled.wait(lock, [this] { return ended || !messages.empty(); });
            if (messages.empty()) return nullptr;
            auto message = std::move(messages.front());
            messages.pop_front();
            return message;
        }
    };
    void Advertise(const std::string &topic) { topics_[topic]; }
    std::shared_ptr<Queue> Subscribe(const std::string &topic) {
        auto queue = std::make_shared<Queue>();
        topics_[topic].push_back(queue);
        return queue;
    }
    size_t Subscribers(const std::string &topic) const { return topics_.at(topic).size(); }
    void Publish(const std::string &topic, Message message) {
        latest_[topic] = message;
        for (auto &queue : topics_.at(topic)) queue->Put(message);
    }
    void End() {
        for (auto &[topic, queues] : topics_)
            for (auto &queue : queues) {
                std::lock_guard lock(queue->mutex);
                queue->ended = true;
                queue->filled.notify_all();
            }
    }

private:
    std::map<std::string, std::vector<std::shared_ptr<Queue>>> topics_;
    std::map<std::string, Message> latest_;
};

template <typename T> void Append(Bytes &bytes, const T &value) {
    size_t at = bytes.size();
    bytes.resize(at + sizeof(T));
    std::memcpy(bytes.data() + at, &value, sizeof(T));
}

/// Differences of neighbours, then lengths of runs, then a checksum.
__attribute__((noinline)) Bytes Squeeze(const std::vector<uint16_t> &depth) {
    Bytes out;
    uint16_t before = 0;
    uint32_t check = 1, other = 0;
    for (size_t i = 0; i < depth.size();) {
        int difference = int(depth[i]) - int(before);
        size_t run = 1;
        while (i + run < depth.size() && run < 255 && depth[i + run] == depth[i]) ++run;
        uint32_t zigzag = uint32_t(difference << 1 ^ difference >> 31);
        while (zigzag >= 128) {
            out.push_back(uint8_t(zigzag | 128));
            zigzag >>= 7;
        }
        out.push_back(uint8_t(zigzag));
        out.push_back(uint8_t(run));
        before = depth[i];
        check = (check + before) % 65521;
        other = (other + check) % 65521;
        i += run;
    }
    Append(out, other << 16 | check);
    return out;
}

struct Track {
    double x, y, vx, vy, weight;
    int age;
};

struct Marker {
    std::string name, text;
    std::array<float, 48> outline;
    std::array<float, 4> colour;
};

__attribute__((noinline)) std::vector<Marker> MakeMarkers(const std::vector<Track> &tracks) {
    std::vector<Marker> markers;
    for (const auto &track : tracks) {
        Marker marker;
        marker.name = "tracks/" + std::to_string(markers.size());
        marker.text = std::to_string(track.age) + " scans, " + std::to_string(std::hypot(track.vx, track.vy)) + " m/s";
        for (size_t i = 0; i < 24; ++i) {
            marker.outline[2 * i] = float(track.x + std::cos(double(i) * 0.2618) * (1 + track.weight));
            marker.outline[2 * i + 1] = float(track.y + std::sin(double(i) * 0.2618) * (1 + track.weight));
        }
        marker.colour = {float(track.weight), 0.5f, 0.2f, 1};
        markers.push_back(std::move(marker));
    }
    return markers;
}

/// A camera that looks at balls in front of a wall.
class Camera {
public:
    static constexpr int kWidth = 160, kHeight = 120;
    const std::vector<uint16_t> &Take(double t) {
        depth_.assign(kWidth * kHeight, 8000);
        for (int ball = 0; ball < 6; ++ball) {
            double cx = 80 + 60 * std::sin(t + ball * 1.1), cy = 60 + 40 * std::cos(t * 0.7 + ball), r = 10 + 2 * ball;
            for (int y = std::max(0, int(cy - r)); y < std::min(kHeight, int(cy + r)); ++y)
                for (int x = std::max(0, int(cx - r)); x < std::min(kWidth, int(cx + r)); ++x) {
                    double d = r * r - (x - cx) * (x - cx) - (y - cy) * (y - cy);
                    if (d > 0) {
                        auto &pixel = depth_[size_t(y * kWidth + x)];
                        pixel = std::min(pixel, uint16_t(3000 + 200 * ball - 10 * std::sqrt(d)));
                    }
                }
        }
        return depth_;
    }

private:
    std::vector<uint16_t> depth_;
};

/// Finds blobs, and follows them.
class Tracker {
public:
    void Update(const std::vector<uint16_t> &depth) {
        Label(depth);
        for (auto &track : tracks_) {
            track.x += track.vx;
            track.y += track.vy;
            for (int round = 0; round < 12; ++round) {
                track.weight = 0.9 * track.weight + 0.1 * std::exp(-track.weight) * (1 + 0.1 * std::sin(track.x));
                track.vx = 0.95 * track.vx + 0.05 * std::sin(track.y * 0.1 + double(blobs_));
                track.vy = 0.95 * track.vy + 0.05 * std::cos(track.x * 0.1);
            }
            ++track.age;
        }
        if (tracks_.size() < 90) tracks_.push_back({double(tracks_.size()), 3, 0.1, 0.1, 0.5, 0});
    }
    const std::vector<Track> &tracks() const { return tracks_; }

private:
    /// Connected pixels that are near: by union of sets.
    void Label(const std::vector<uint16_t> &depth) {
        const size_t width = Camera::kWidth;
        parents_.resize(depth.size());
        blobs_ = 0;
        for (size_t i = 0; i < depth.size(); ++i) {
            parents_[i] = uint32_t(i);
            if (depth[i] > 7000) continue;
            ++blobs_;
            if (i % width && depth[i - 1] <= 7000) Join(i, i - 1);
            if (i >= width && depth[i - width] <= 7000) Join(i, i - width);
        }
        for (size_t i = 0; i < depth.size(); ++i)
            if (depth[i] <= 7000 && parents_[i] != i) --blobs_;
    }
    uint32_t Root(size_t i) {
        while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
        return uint32_t(i);
    }
    void Join(size_t a, size_t b) {
        uint32_t x = Root(a), y = Root(b);
        if (x != y) parents_[std::max(x, y)] = std::min(x, y);
    }
    std::vector<Track> tracks_;
    std::vector<uint32_t> parents_;
    long blobs_ = 0;
};

class Perception {
public:
    Perception(Bus &bus, bool always) : bus_(bus), always_(always) {
        for (const char *topic : {"/tracks", "/markers", "/depth/compressed"}) bus_.Advertise(topic);
    }
    void Cycle(double t) {
        const auto &depth = camera_.Take(t);
        tracker_.Update(depth);
        PublishTracks();
        if (always_ || bus_.Subscribers("/markers")) PublishMarkers();
        if (always_ || bus_.Subscribers("/depth/compressed")) PublishDepth(depth);
    }

private:
    void Publish(const char *topic, Bytes bytes) { bus_.Publish(topic, std::make_shared<const Bytes>(std::move(bytes))); }
    void PublishTracks() {
        Bytes bytes;
        for (const auto &track : tracker_.tracks()) Append(bytes, track);
        Publish("/tracks", std::move(bytes));
    }
    void PublishMarkers() {
        Bytes bytes;
        for (const auto &marker : MakeMarkers(tracker_.tracks())) {
            Append(bytes, uint32_t(marker.name.size()));
            bytes.insert(bytes.end(), marker.name.begin(), marker.name.end());
            Append(bytes, uint32_t(marker.text.size()));
            bytes.insert(bytes.end(), marker.text.begin(), marker.text.end());
            Append(bytes, marker.outline);
            Append(bytes, marker.colour);
        }
        Publish("/markers", std::move(bytes));
    }
    void PublishDepth(const std::vector<uint16_t> &depth) { Publish("/depth/compressed", Squeeze(depth)); }
    Bus &bus_;
    bool always_;
    Camera camera_;
    Tracker tracker_;
};

/// Plans a way around what is tracked: on a thread of its own.
class Planner {
public:
    explicit Planner(std::shared_ptr<Bus::Queue> queue) : queue_(std::move(queue)) {}
    void Run() {
        while (auto message = queue_->Take()) {
            std::vector<Track> tracks(message->size() / sizeof(Track));
            std::memcpy(tracks.data(), message->data(), tracks.size() * sizeof(Track));
            Plan(tracks);
        }
    }
    double best() const { return best_; }

private:
    void Plan(const std::vector<Track> &tracks) {
        double least = 1e9;
        for (int arc = -6; arc <= 6; ++arc) {
            double cost = std::abs(arc) * 0.1, x = 0, y = 0, yaw = 0;
            for (int i = 0; i < 8; ++i) {
                yaw += arc * 0.02;
                x += std::cos(yaw);
                y += std::sin(yaw);
                for (const auto &track : tracks) {
                    double dx = track.x + i * track.vx - x, dy = track.y + i * track.vy - y;
                    cost += track.weight / (0.1 + dx * dx + dy * dy);
                }
            }
            least = std::min(least, cost);
        }
        best_ += least;
    }
    std::shared_ptr<Bus::Queue> queue_;
    double best_ = 0;
};

} // namespace semaphore

int main(int argc, char **argv) {
    using namespace semaphore;
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : std::numeric_limits<long>::max();
    Bus bus;
    Perception perception(bus, slow);
    Planner planner(bus.Subscribe("/tracks"));
    std::thread thread([&planner] { planner.Run(); });
    for (long i = 0; i < steps; ++i) perception.Cycle(double(i) * 0.02);
    bus.End();
    thread.join();
    std::printf("%g\n", planner.best());
}
