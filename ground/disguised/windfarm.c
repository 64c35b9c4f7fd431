// defect: each of the turbines of the farm has a thread of its own that does nothing but read its line and handle one small message in each tick
// kinds: thread-per-client
// guilty: turbine_thread, handle_report, start_threads, serve_all
// gain: 56
//
// Supervision of a wind farm in real time: controllers send reports over lines (here: socket pairs), the supervisor estimates the
// wind field and the wakes, sets the power of the turbines, watches alarms, and keeps statistics.
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TURBINES = 96, GRID = 160, HISTORY = 256 };

struct report {
    uint32_t turbine, sequence;
    float wind, direction, power, rotor;
    float temperature[4];
};

struct turbine {
    double x, y;
    int near_end, far_end;            // the supervisor's and the controller's side of the line
    struct report last;
    double setpoint, estimate, damage;
    float history[HISTORY];
    int alarms;
};

static struct turbine farm[TURBINES];
static double field_a[GRID][GRID], field_b[GRID][GRID];
static double (*field)[GRID] = field_a, (*field_next)[GRID] = field_b;
static double wake[TURBINES][TURBINES];      // of the first, behind the second

static pthread_mutex_t farm_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_reported = PTHREAD_COND_INITIALIZER;
static int reported;                  // of this tick; under farm_lock

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void build_farm(void)
{
    for (int i = 0; i < TURBINES; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
            die("socketpair");
        farm[i].near_end = pair[0];
        farm[i].far_end = pair[1];
        farm[i].x = 600.0 * (i % 12) + 40 * sin(i);
        farm[i].y = 900.0 * (i / 12) + 60 * cos(3 * i);
        farm[i].setpoint = 1;
    }
}

// The controllers of the turbines: they measure and send their reports.
static void controllers_send(uint32_t tick)
{
    double t = 0.1 * tick;
    for (int i = 0; i < TURBINES; i++) {
        struct turbine *w = &farm[i];
        struct report r = { .turbine = i, .sequence = tick };
        double gust = 0;
        for (int k = 1; k <= 4; k++)
            gust += sin(0.3 * k * t + 0.001 * k * w->x + i) / k;
        r.wind = 9 + 2 * sin(0.02 * t + 0.0004 * w->x) + 0.6 * gust;
        r.direction = 0.3 * sin(0.01 * t) + 0.05 * gust;
        r.power = w->setpoint * fmin(1, pow(r.wind / 12, 3));
        r.rotor = 0.8 * r.wind;
        for (int k = 0; k < 4; k++)
            r.temperature[k] = 40 + 12 * r.power + 3 * k + gust;
        if (send(w->far_end, &r, sizeof r, 0) != sizeof r)
            die("send");
    }
}

// What has to be done for one report.
static void handle_report(const struct report *r)
{
    struct turbine *w = &farm[r->turbine];
    w->last = *r;
    w->estimate += 0.2 * (r->wind - w->estimate);
    w->history[r->sequence % HISTORY] = r->wind;
    w->damage += 1e-6 * r->rotor * r->rotor * fabs(r->wind - w->estimate);
    for (int k = 0; k < 4; k++)
        if (r->temperature[k] > 58)
            w->alarms++;
}

static void *turbine_thread(void *arg)
{
    struct turbine *w = arg;
    struct report r;
    for (;;) {
        ssize_t n = recv(w->near_end, &r, sizeof r, 0);
        if (n != (ssize_t)sizeof r)
            return NULL;
        pthread_mutex_lock(&farm_lock);
        handle_report(&r);
        if (++reported == TURBINES)
            pthread_cond_signal(&all_reported);
        pthread_mutex_unlock(&farm_lock);
    }
}

static void start_threads(void)
{
    for (int i = 0; i < TURBINES; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, turbine_thread, &farm[i]))
            die("pthread_create");
        pthread_detach(thread);
    }
}

static int epoll_fd;

static void watch_lines(void)
{
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        die("epoll_create1");
    for (int i = 0; i < TURBINES; i++) {
        struct epoll_event e = { .events = EPOLLIN, .data.u32 = i };
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, farm[i].near_end, &e))
            die("epoll_ctl");
    }
}

// Handles the reports of this tick; returns when all have come.
static void serve_all(int threaded)
{
    if (threaded) {
        pthread_mutex_lock(&farm_lock);
        while (reported < TURBINES)
            pthread_cond_wait(&all_reported, &farm_lock);
        reported = 0;
        pthread_mutex_unlock(&farm_lock);
        return;
    }
    struct epoll_event ready[TURBINES];
    for (int got = 0; got < TURBINES;) {
        int n = epoll_wait(epoll_fd, ready, TURBINES, -1);
        for (int k = 0; k < n; k++) {
            struct report r;
            if (recv(farm[ready[k].data.u32].near_end, &r, sizeof r, 0) != sizeof r)
                die("recv");
            handle_report(&r);
            got++;
        }
    }
}

// The wind over the whole site: drifts and diffuses, and is drawn to what the turbines measure.
static void update_field(void)
{
    for (int i = 0; i < TURBINES; i++) {
        int gx = 3 + (int)(farm[i].x / 110) % (GRID - 6), gy = 3 + (int)(farm[i].y / 110) % (GRID - 6);
        field[gy][gx] += 0.3 * (farm[i].estimate - field[gy][gx]);
    }
    // (the rim stays zero)
    for (int y = 1; y < GRID - 1; y++)
        for (int x = 1; x < GRID - 1; x++)
            field_next[y][x] = 0.6 * field[y][x] + 0.16 * field[y][x - 1] + 0.04 * field[y][x + 1]
                             + 0.1 * (field[y - 1][x] + field[y + 1][x]);
    double (*old)[GRID] = field;
    field = field_next;
    field_next = old;
}

// Losses behind other turbines, by a Gaussian wake.
static void update_wakes(double direction)
{
    double c = cos(direction), s = sin(direction);
    for (int j = 0; j < TURBINES; j++)
        for (int i = 0; i < TURBINES; i++) {
            double dx = farm[j].x - farm[i].x, dy = farm[j].y - farm[i].y;
            double along = c * dx + s * dy, across = c * dy - s * dx;
            wake[j][i] = 0;
            if (along > 1 && along < 3000 && fabs(across) < 400) {
                double width = 60 + 0.05 * along;
                wake[j][i] = 0.3 * exp(-across * across / (2 * width * width)) * 60 / width;
            }
        }
}

// Set points: some sweeps of a coordinate descent for the power of the farm.
static double optimise(void)
{
    double total = 0;
    for (int sweep = 0; sweep < 8; sweep++) {
        total = 0;
        for (int j = 0; j < TURBINES; j++) {
            double loss = 0;
            for (int i = 0; i < TURBINES; i++)
                loss += wake[j][i] * farm[i].setpoint;
            double wind = farm[j].estimate * fmax(0.4, 1 - loss);
            farm[j].setpoint += 0.1 * (fmin(1, 1.15 - loss) - farm[j].setpoint);
            total += farm[j].setpoint * wind * wind * wind;
        }
    }
    return total;
}

static double statistics(void)
{
    double turbulence = 0;
    for (int i = 0; i < TURBINES; i++) {
        double sum = 0, squares = 0;
        for (int k = 0; k < HISTORY; k++) {
            sum += farm[i].history[k];
            squares += (double)farm[i].history[k] * farm[i].history[k];
        }
        double mean = sum / HISTORY;
        turbulence += sqrt(fmax(0, squares / HISTORY - mean * mean)) / (mean + 0.1);
    }
    return turbulence;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s slow|fast [ticks]\n", argv[0]);
        return 1;
    }
    int threaded = strcmp(argv[1], "fast") != 0;
    long ticks = argc > 2 ? atol(argv[2]) : -1;
    double power = 0, turbulence = 0;
    struct timespec due;

    build_farm();
    if (threaded)
        start_threads();
    else
        watch_lines();
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (long n = 0; n != ticks; n++) {
        controllers_send((uint32_t)n);
        serve_all(threaded);
        for (int k = 0; k < 12; k++)
            update_field();
        update_wakes(farm[0].last.direction);
        power += optimise();
        turbulence += statistics();
        due.tv_nsec += 4000000;
        if (due.tv_nsec >= 1000000000) {
            due.tv_nsec -= 1000000000;
            due.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    }
    double sum = 0, damage = 0;
    int alarms = 0;
    for (int y = 0; y < GRID; y++)
        for (int x = 0; x < GRID; x++)
            sum += field[y][x];
    for (int i = 0; i < TURBINES; i++) {
        damage += farm[i].damage;
        alarms += farm[i].alarms;
    }
    printf("%.4f %.6f %.4f %.9f %d\n", power, turbulence, sum, damage, alarms);
    return 0;
}
