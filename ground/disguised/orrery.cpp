// defect: none; a sparse system is solved by conjugate gradients, samples are transformed, values looked up in a sorted table and an expression tree is evaluated
// kinds: -
// guilty: -
// build: -O2 -g
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace orrery {
struct Sparse {
    std::vector<int> row, column;
    std::vector<double> value;
    __attribute__((noinline)) void Times(const std::vector<double> &x, std::vector<double> &y) const {
        for (std::size_t i = 0; i + 1 < row.size(); ++i) {
            double sum = 0;
            for (int k = row[i]; k < row[i + 1]; ++k) sum += value[k] * x[column[k]];
            y[i] = sum;
        }
    }
};
double Dot(const std::vector<double> &a, const std::vector<double> &b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}
__attribute__((noinline)) double Solve(const Sparse &a, const std::vector<double> &b, std::vector<double> &x) {
    static std::vector<double> r, p, ap;
    r = b; p = b; ap.resize(b.size());
    std::fill(x.begin(), x.end(), 0.0);
    double rr = Dot(r, r);
    for (int round = 0; round < 12 && rr > 1e-12; ++round) {
        a.Times(p, ap);
        double alpha = rr / Dot(p, ap);
        for (std::size_t i = 0; i < x.size(); ++i) { x[i] += alpha * p[i]; r[i] -= alpha * ap[i]; }
        double next = Dot(r, r), beta = next / rr;
        for (std::size_t i = 0; i < p.size(); ++i) p[i] = r[i] + beta * p[i];
        rr = next;
    }
    return rr;
}
__attribute__((noinline)) void Transform(std::vector<std::complex<double>> &a) {
    for (std::size_t i = 1, j = 0; i < a.size(); ++i) {
        std::size_t bit = a.size() >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j ^= bit;
        if (i < j) std::swap(a[i], a[j]);
    }
    for (std::size_t length = 2; length <= a.size(); length <<= 1) {
        std::complex<double> w = std::polar(1.0, 6.283185307 / length);
        for (std::size_t i = 0; i < a.size(); i += length) {
            std::complex<double> at = 1;
            for (std::size_t k = 0; k < length / 2; ++k, at *= w) {
                auto u = a[i + k], v = a[i + k + length / 2] * at;
                a[i + k] = u + v; a[i + k + length / 2] = u - v;
            }
        }
    }
}
__attribute__((noinline)) double Table(const std::vector<std::pair<double, double>> &table, double at) {
    auto one = std::lower_bound(table.begin(), table.end(), at, [](auto &a, double b) { return a.first < b; });
    return one == table.end() ? 0 : one->second;
}
struct Term {
    char sign = 'x';
    double value = 0;
    std::unique_ptr<Term> left, right;
    __attribute__((noinline)) double At(double x) const {
        switch (sign) {
        case '+': return left->At(x) + right->At(x);
        case '*': return left->At(x) * right->At(x);
        case 's': return std::sin(left->At(x));
        case 'c': return value;
        default: return x;
        }
    }
};
std::unique_ptr<Term> Make(int depth, unsigned &seed) {
    auto one = std::make_unique<Term>();
    seed = seed * 1664525 + 1013904223;
    if (depth == 0) { one->sign = seed >> 30 & 1 ? 'x' : 'c'; one->value = (seed >> 16) * 1e-5; return one; }
    one->sign = "+*s"[(seed >> 20) % 3];
    one->left = Make(depth - 1, seed);
    if (one->sign != 's') one->right = Make(depth - 1, seed);
    return one;
}
__attribute__((noinline)) int Farthest(const std::vector<double> &x) {
    int best = 0;
    for (std::size_t i = 1; i < x.size(); ++i) if (std::fabs(x[i]) > std::fabs(x[best])) best = int(i);
    return best;
}
} // namespace orrery

int main(int argc, char **argv) {
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    const int n = 3000;
    orrery::Sparse a;
    for (int i = 0; i < n; ++i) {
        a.row.push_back(int(a.column.size()));
        for (int j : {i - 60, i - 1, i, i + 1, i + 60}) if (j >= 0 && j < n) { a.column.push_back(j); a.value.push_back(j == i ? 4.1 : -1.0); }
    }
    a.row.push_back(int(a.column.size()));
    std::vector<std::pair<double, double>> table;
    for (int i = 0; i < 4000; ++i) table.push_back({i * 0.01, std::sin(i * 0.01)});
    unsigned seed = 7;
    auto term = orrery::Make(9, seed);
    std::vector<double> b(n), x(n);
    std::vector<std::complex<double>> wave(2048);
    double sum = 0;
    for (long step = 0; step != steps; ++step) {
        for (int i = 0; i < n; ++i) b[i] = std::sin(0.01 * (i + step));
        sum += orrery::Solve(a, b, x) + orrery::Farthest(x);
        for (std::size_t i = 0; i < wave.size(); ++i) wave[i] = b[i];
        orrery::Transform(wave);
        for (int i = 0; i < 1500; ++i) sum += orrery::Table(table, (i * 37 + step * 11) % 4000 * 0.01);
        for (int i = 0; i < 40; ++i) sum += std::fmod(term->At(0.01 * (i + step)), 10.0);
    }
    std::printf("%g %g\n", sum, std::abs(wave[3]));
}
