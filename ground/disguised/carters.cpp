// defect: in one stage, the next cart is taken from the front of a vector, which moves all carts behind it
// kinds: elements-moved-each-step
// guilty: carters::Yard::Next, carters::Dispatch
// seconds: 20
// build: -O2 -g
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <vector>

namespace carters {
struct Cart { int number; double load, wear; };

std::vector<Cart> Weigh(int carts) {
    std::vector<Cart> all;
    double scale = 1;
    for (int i = 0; i < carts; ++i) {
        for (int k = 0; k < 350; ++k) scale = 0.999 * scale + 1e-3 * std::fabs(std::sin(k * scale + i));
        all.push_back({i, 2 + scale, 0});
    }
    return all;
}

class Yard {
public:
    Yard(const std::vector<Cart> &carts, bool moves) : moves_(moves) {
        if (moves) array_ = carts;
        else queue_.assign(carts.begin(), carts.end());
    }
    bool Empty() const { return moves_ ? array_.empty() : queue_.empty(); }
    Cart Next() {
        Cart next = moves_ ? array_.front() : queue_.front();
        if (moves_) array_.erase(array_.begin());
        else queue_.pop_front();
        return next;
    }
private:
    bool moves_;
    std::vector<Cart> array_;
    std::deque<Cart> queue_;
};

double Haul(Cart cart) {
    double way = 0;
    for (int mile = 1; mile <= 40; ++mile) {
        cart.wear += 1e-3 * std::log1p(cart.load * mile);
        way += std::sqrt(cart.load + cart.wear);
    }
    return way;
}

double Dispatch(Yard &yard) {
    double sum = 0;
    while (!yard.Empty()) sum += Haul(yard.Next());
    return sum;
}

double Ledger(const std::vector<Cart> &carts, int years) {
    double balance = 1000;
    for (int year = 0; year < years; ++year) {
        for (const Cart &cart : carts) balance += 1e-4 * (std::cos(cart.load * year) - 1e-6 * balance);
    }
    return balance;
}
} // namespace carters

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    auto carts = carters::Weigh(50000);
    carters::Yard yard(carts, slow);
    double hauled = carters::Dispatch(yard);
    std::printf("%.2f %.2f\n", hauled, carters::Ledger(carts, 800));
}
