// defect: the way of each robot is asked of the planner's process by a message of its own; one message can have all
// kinds: many-messages-each-step, query-per-item
// guilty: Client::Ask, Fleet::Step
// gain: 43 %
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

static void Plan(int socket) {
    std::vector<double> values(256);
    for (;;) {
        ssize_t got = recv(socket, values.data(), values.size() * sizeof(double), 0);
        if (got <= 0) _exit(0);
        size_t number = got / sizeof(double);
        for (size_t i = 0; i < number; ++i)
            for (int k = 0; k < 150; ++k) values[i] = 0.999 * values[i] + 1e-3 * std::sin(values[i] + k);
        send(socket, values.data(), number * sizeof(double), 0);
    }
}

struct Client {
    int socket;
    void Ask(double *values, size_t number) {
        send(socket, values, number * sizeof(double), 0);
        recv(socket, values, number * sizeof(double), MSG_WAITALL);
    }
};

struct Fleet {
    Client client;
    bool slow;
    std::vector<double> robots = std::vector<double>(120, 0.5);
    void Step() {
        if (slow)
            for (double &robot : robots) client.Ask(&robot, 1);
        else
            client.Ask(robots.data(), robots.size());
        for (double &robot : robots)
            for (int k = 0; k < 100; ++k) robot += 1e-4 * std::cos(robot * k);
    }
};

int main(int argc, char **argv) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends)) return 1;
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    if (fork() == 0) {
        close(ends[0]);
        Plan(ends[1]);
    }
    close(ends[1]);
    Fleet fleet{{ends[0]}, argc > 1 && !std::strcmp(argv[1], "slow")};
    for (long step = 0; step != steps; ++step) fleet.Step();
    std::printf("%g\n", fleet.robots[0]);
    close(ends[0]);
    wait(nullptr);
}
