// defect: each account's balance is asked for by a statement that is prepared for it
// kinds: query-per-item
// guilty: ledger::Balance, ledger::Tick
// build: -O2
// libraries: -lsqlite3
#include <sqlite3.h>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

namespace ledger {
sqlite3 *db;
sqlite3_stmt *all;
double balances[200];
__attribute__((noinline)) double Balance(int account) {
    char text[96];
    std::snprintf(text, sizeof text, "select balance from accounts where id = %d", account);
    sqlite3_stmt *one;
    sqlite3_prepare_v2(db, text, -1, &one, nullptr);
    double balance = sqlite3_step(one) == SQLITE_ROW ? sqlite3_column_double(one, 0) : 0;
    sqlite3_finalize(one);
    return balance;
}
__attribute__((noinline)) double Tick(bool each, double at) {
    if (each) for (int i = 0; i < 200; ++i) balances[i] = Balance(i);
    else { sqlite3_reset(all); while (sqlite3_step(all) == SQLITE_ROW) balances[sqlite3_column_int(all, 0)] = sqlite3_column_double(all, 1); }
    double sum = 0;
    for (int i = 0; i < 20000; ++i) sum += std::sin(balances[i % 200] + at);
    return sum;
}
}

int main(int argc, char **argv) {
    sqlite3_open(":memory:", &ledger::db);
    sqlite3_exec(ledger::db, "create table accounts (id integer primary key, balance real)", nullptr, nullptr, nullptr);
    for (int i = 0; i < 200; ++i) {
        char text[96];
        std::snprintf(text, sizeof text, "insert into accounts values (%d, %d)", i, i * 3);
        sqlite3_exec(ledger::db, text, nullptr, nullptr, nullptr);
    }
    sqlite3_prepare_v2(ledger::db, "select id, balance from accounts", -1, &ledger::all, nullptr);
    volatile double sum = 0;
    for (double at = 0;; at += 0.1) sum = sum + ledger::Tick(argc > 1 && !std::strcmp(argv[1], "slow"), at);
}
