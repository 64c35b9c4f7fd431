// defect: the nearest free depot of each truck is asked of a table in SQLite without an index
// kinds: full-scan-each-step
// guilty: Depots::Nearest, Truck::Step
// gain: 86 %
// needs: sqlite3
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sqlite3.h>
#include <vector>

class Depots {
public:
    explicit Depots(bool slow) {
        sqlite3_open(":memory:", &db_);
        Run("CREATE TABLE depot (mile REAL, free INTEGER, price REAL)");
        Run("BEGIN");
        for (int i = 0; i < 3000; ++i) {
            char text[120];
            std::snprintf(text, sizeof text, "INSERT INTO depot VALUES (%d.5, %d, %g)", i * 7 % 3000, i % 3, 1 + std::sin(i));
            Run(text);
        }
        Run("COMMIT");
        if (!slow) Run("CREATE INDEX by_mile ON depot (free, mile)");
        sqlite3_prepare_v2(db_, "SELECT mile, price FROM depot WHERE free = 1 AND mile >= ?1 AND mile < ?1 + 6", -1, &ask_, nullptr);
    }
    double Nearest(double mile, double *price) {
        double found = mile;
        sqlite3_bind_double(ask_, 1, mile);
        while (sqlite3_step(ask_) == SQLITE_ROW) {
            found = sqlite3_column_double(ask_, 0);
            *price = sqlite3_column_double(ask_, 1);
        }
        sqlite3_reset(ask_);
        return found;
    }
private:
    void Run(const char *text) { sqlite3_exec(db_, text, nullptr, nullptr, nullptr); }
    sqlite3 *db_ = nullptr;
    sqlite3_stmt *ask_ = nullptr;
};

struct Truck {
    double mile = 0, paid = 0;
    void Step(Depots &depots) {
        double price = 0, next = depots.Nearest(std::fmod(mile, 2900), &price);
        for (int i = 0; i < 1500; ++i) paid += 1e-3 * std::sqrt(price + i) * std::cos(next);
        mile += 3.7;
    }
};

int main(int argc, char **argv) {
    Depots depots(argc > 1 && !std::strcmp(argv[1], "slow"));
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    std::vector<Truck> trucks(50);
    for (size_t i = 0; i < trucks.size(); ++i) trucks[i].mile = 57 * i;
    for (long step = 0; step != steps; ++step)
        for (auto &truck : trucks) truck.Step(depots);
    std::printf("%g\n", trucks[0].paid);
}
