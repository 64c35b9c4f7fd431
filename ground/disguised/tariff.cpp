// defect: a shared lock on the tariffs is taken for each parcel, though tariffs change once a day
// kinds: lock-per-item
// guilty: tariff::Desk::Rate, tariff::Desk::Weigh
// build: -O2 -g
#include <cmath>
#include <cstring>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace tariff {
struct Book {
    std::shared_mutex guard;
    double rates[64];
    Book() {
        for (int i = 0; i < 64; ++i) rates[i] = 1 + 0.1 * i;
    }
};

struct Desk {
    Book &book;
    std::vector<unsigned> parcels;
    double copy[64], income = 0;
    __attribute__((noinline)) double Rate(unsigned zone) {
        std::shared_lock<std::shared_mutex> hold(book.guard);
        return book.rates[zone];
    }
    __attribute__((noinline)) void Weigh(bool slow) {
        if (!slow) {
            std::shared_lock<std::shared_mutex> hold(book.guard);
            std::memcpy(copy, book.rates, sizeof copy);
        }
        for (unsigned parcel : parcels) {
            double grams = 20 + parcel % 977, fee = slow ? Rate(parcel % 64) : copy[parcel % 64];
            income += fee * std::sqrt(grams) + std::log1p(grams * 0.001);
        }
    }
    __attribute__((noinline)) void Sort(long day) {
        for (auto &parcel : parcels) parcel = parcel * 1664525u + static_cast<unsigned>(day);
    }
};
} // namespace tariff

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    tariff::Book book;
    auto work = [&](unsigned seed) {
        tariff::Desk desk{book, {}, {}, 0};
        for (unsigned i = 0; i < 5000; ++i) desk.parcels.push_back(seed + i * 2654435761u);
        for (long day = 0;; ++day) {
            desk.Sort(day);
            desk.Weigh(slow);
        }
    };
    std::thread other(work, 7);
    work(3);
}
