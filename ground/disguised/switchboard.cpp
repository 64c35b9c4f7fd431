// defect: each request opens a transaction that is never closed, so the registry grows with each request
// kinds: memory-grows-over-time
// guilty: switchboard::Registry::Open
// build: -O2 -g
#include <sys/socket.h>
#include <unistd.h>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <cstdlib>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace switchboard {

struct Request { std::uint64_t id; std::uint32_t robot; float x, y, heading; };
struct Reply { std::uint64_t id; float cost; };

struct Transaction {
    Request request;
    std::string note;
    std::vector<float> route;
};

/// The transactions that wait for their reply.
class Registry {
public:
    explicit Registry(bool cleans) : cleans_(cleans) {}
    __attribute__((noinline)) Transaction &Open(const Request &request) {
        Transaction &one = open_[request.id];
        one.request = request;
        one.note.assign(180, 'a' + request.id % 26);
        one.route.resize(100);
        return one;
    }
    __attribute__((noinline)) void Close(std::uint64_t id) {
        closed_++;
        if (cleans_) open_.erase(id);
    }
    std::size_t size() const { return open_.size(); }

private:
    bool cleans_;
    std::uint64_t closed_ = 0;
    std::unordered_map<std::uint64_t, Transaction> open_;
};

/// A coarse map of costs for the route.
class CostMap {
public:
    CostMap() : cells_(256 * 256) {
        for (std::size_t i = 0; i < cells_.size(); ++i) cells_[i] = 1.0f + 0.5f * std::sin(i * 0.013f);
    }
    __attribute__((noinline)) float Route(const Request &request, std::vector<float> &route) const {
        float x = request.x, y = request.y, sum = 0;
        for (int round = 0; round < 8; ++round)
        for (std::size_t i = 0; i < route.size(); ++i) {
            x += 0.7f * std::cos(request.heading + 0.01f * i);
            y += 0.7f * std::sin(request.heading + 0.01f * i);
            route[i] = cells_[(int(std::fabs(y)) & 255) * 256 + (int(std::fabs(x)) & 255)];
            sum += route[i];
        }
        return sum;
    }

private:
    std::vector<float> cells_;
};

class Server {
public:
    Server(int fd, bool cleans) : fd_(fd), registry_(cleans) {}
    void Serve() {
        Request request;
        while (::recv(fd_, &request, sizeof request, MSG_WAITALL) == sizeof request) Answer(request);
    }

private:
    __attribute__((noinline)) void Answer(const Request &request) {
        Transaction &transaction = registry_.Open(request);
        Reply reply{request.id, map_.Route(request, transaction.route)};
        load_ = 0.99f * load_ + 0.01f * reply.cost;
        ::send(fd_, &reply, sizeof reply, 0);
        registry_.Close(request.id);
    }
    int fd_;
    Registry registry_;
    CostMap map_;
    float load_ = 0;
};

void Fleet(int fd, long count) {
    std::uint64_t id = 0;
    for (long i = 0; count == 0 || i < count; ++i) {
        Request request{++id, std::uint32_t(id % 40), float(id % 251), float(id % 239), float(id % 7)};
        Reply reply;
        if (::send(fd, &request, sizeof request, 0) < 0) return;
        if (::recv(fd, &reply, sizeof reply, MSG_WAITALL) <= 0) return;
        if (i % 20 == 0) usleep(200);
    }
    ::shutdown(fd, SHUT_RDWR);
}

} // namespace switchboard

int main(int argc, char **argv) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return 1;
    long count = argc > 2 ? std::atol(argv[2]) : 0;
    std::thread fleet(switchboard::Fleet, pair[1], count);
    switchboard::Server server(pair[0], !(argc > 1 && !std::strcmp(argv[1], "slow")));
    server.Serve();
    fleet.join();
}
