// defect: each state of a vehicle is a transaction of its own; one for each step is enough
// kinds: file-wait, query-per-item
// guilty: Journal::Save, Journal::Execute, main
// gain: 67 %, w 56 %
// libraries: -lsqlite3
// needs: sqlite3
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sqlite3.h>
#include <vector>

struct Vehicle { double x = 0, speed = 1; };

class Journal {
public:
    explicit Journal(bool slow) : slow_(slow) {
        std::remove("/var/tmp/sqlite_journal.db");
        sqlite3_open("/var/tmp/sqlite_journal.db", &db_);
        Execute("CREATE TABLE state (step INTEGER, vehicle INTEGER, x REAL, speed REAL)");
        sqlite3_prepare_v2(db_, "INSERT INTO state VALUES (?, ?, ?, ?)", -1, &insert_, nullptr);
    }
    ~Journal() {
        sqlite3_finalize(insert_);
        sqlite3_close(db_);
        std::remove("/var/tmp/sqlite_journal.db");
    }
    void Save(long step, const std::vector<Vehicle> &vehicles) {
        if (!slow_) Execute("BEGIN");
        for (size_t i = 0; i < vehicles.size(); ++i) {
            sqlite3_bind_int64(insert_, 1, step);
            sqlite3_bind_int64(insert_, 2, i);
            sqlite3_bind_double(insert_, 3, vehicles[i].x);
            sqlite3_bind_double(insert_, 4, vehicles[i].speed);
            sqlite3_step(insert_);
            sqlite3_reset(insert_);
        }
        if (!slow_) Execute("COMMIT");
    }
private:
    void Execute(const char *statement) { sqlite3_exec(db_, statement, nullptr, nullptr, nullptr); }
    bool slow_;
    sqlite3 *db_ = nullptr;
    sqlite3_stmt *insert_ = nullptr;
};

int main(int argc, char **argv) {
    Journal journal(argc > 1 && !std::strcmp(argv[1], "slow"));
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    std::vector<Vehicle> vehicles(20);
    for (long step = 0; step != steps; ++step) {
        for (auto &vehicle : vehicles)
            for (int i = 0; i < 2000; ++i) {
                vehicle.speed += 1e-3 * std::sin(vehicle.x);
                vehicle.x += 1e-3 * vehicle.speed;
            }
        journal.Save(step, vehicles);
    }
}
