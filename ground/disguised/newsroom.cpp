// defect: each draw command of a frame is queued by itself and wakes the render thread by itself; the frame's commands could go as one batch
// kinds: work-in-small-pieces, lock-wait
// guilty: newsroom::Desk::Push, newsroom::Desk::Pop, newsroom::Press::Print, newsroom::Press::Run, newsroom::World::Frame
// build: -O2 -g
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace newsroom {
struct Command { int kind; float x, y, size; };
class Desk {
public:
    void Push(const std::vector<Command> &all) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            queue_.insert(queue_.end(), all.begin(), all.end());
        }
        ready_.notify_one();
    }
    void Push(const Command &one) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            queue_.push_back(one);
        }
        ready_.notify_one();
    }
    bool Pop(std::deque<Command> &out) {
        std::unique_lock<std::mutex> lock(mutex_);
        ready_.wait(lock, [&] { return !queue_.empty() || closed_; });
        out.clear();
        out.swap(queue_);
        return !out.empty();
    }
    void Close() {
        std::lock_guard<std::mutex> lock(mutex_);
        closed_ = true;
        ready_.notify_all();
    }
private:
    std::mutex mutex_;
    std::condition_variable ready_;
    std::deque<Command> queue_;
    bool closed_ = false;
};
class Press {
public:
    void Run(Desk &desk) {
        std::deque<Command> commands;
        while (desk.Pop(commands))
            for (const Command &one : commands) Print(one);
    }
    void Print(const Command &one) { for (int i = 0; i < 4; ++i) ink_ += std::sqrt(one.x * one.x + one.y * one.y + i) * one.size; }
    double ink_ = 0;
};
class World {
public:
    World(Desk &desk, bool single) : desk_(desk), single_(single) {}
    void Frame(double t) {
        std::vector<Command> batch;
        for (int i = 0; i < 400; ++i) {
            Command one{i % 4, Move(t, i), Move(t + 1, i), 1.0f};
            if (single_) desk_.Push(one);
            else batch.push_back(one);
        }
        if (!single_) desk_.Push(batch);
    }
private:
    __attribute__((noinline)) float Move(double t, int i) {
        double at = i;
        for (int k = 0; k < 15; ++k) at += std::sin(t * 0.1 + at * 0.01);
        return (float)at;
    }
    Desk &desk_;
    bool single_;
};
} // namespace newsroom

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    newsroom::Desk desk;
    newsroom::Press press;
    newsroom::World world(desk, slow);
    std::thread render([&] { press.Run(desk); });
    for (long step = 0; step != steps; ++step) world.Frame(step * 0.01);
    desk.Close();
    render.join();
    std::printf("%g\n", press.ink_);
}
