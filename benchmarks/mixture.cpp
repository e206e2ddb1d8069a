// The job of benchmarks/mixture.py, one chain of SGHMC for the two means of a mixture, as a C++ programmer would write it.
//
// U(m) = |m|^2 / (2 * prior_variance) - sum over x of log(N(x; m_0, 1) / 2 + N(x; m_1, 1) / 2).
// Every step: m += eps * r; then r += -eps * friction * r - eps * gradient + N(0, 2 * (friction - estimate) * eps).
// The gradient is that of all the data plus N(0, noise_variance), or, with 0 < batch < number, that of a minibatch drawn without
// replacement, scaled up. Two programs come of one template: `plain` has double precision and the standard library's random numbers,
// `fast` single precision and a small generator of its own.

#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

struct Job {
    double step_size, friction, noise_estimate, noise_variance, prior_variance;
    std::int64_t number, batch, draws, steps;
    std::uint64_t seed;
};

// Standard normal numbers of the standard library.
struct StandardNormals {
    std::mt19937_64 engine;
    std::normal_distribution<double> normal{0.0, 1.0};
    explicit StandardNormals(std::uint64_t seed) : engine(seed) {}
    double operator()() { return normal(engine); }
    std::int64_t below(std::int64_t bound) { return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(engine); }
};

// xoshiro256+ (Blackman and Vigna, 2021), seeded by splitmix64, and Marsaglia's polar method.
struct SmallNormals {
    std::uint64_t state[4];
    float spare = 0;
    bool has_spare = false;
    explicit SmallNormals(std::uint64_t seed) {
        for (auto& word : state) {
            std::uint64_t z = (seed += 0x9e3779b97f4a7c15ULL);
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
            z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
            word = z ^ (z >> 31);
        }
    }
    std::uint64_t next() {
        const std::uint64_t result = state[0] + state[3], shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = (state[3] << 45) | (state[3] >> 19);
        return result;
    }
    float operator()() {
        if (has_spare) {
            has_spare = false;
            return spare;
        }
        float u, v, square;
        do {
            const std::uint64_t bits = next();  // two numbers of 24 bits each, from the upper bits
            u = static_cast<float>(bits >> 40) * 0x1p-23f - 1.0f;
            v = static_cast<float>((bits >> 16) & 0xffffff) * 0x1p-23f - 1.0f;
            square = u * u + v * v;
        } while (square >= 1.0f || square == 0.0f);
        const float factor = std::sqrt(-2.0f * std::log(square) / square);
        spare = v * factor;
        has_spare = true;
        return u * factor;
    }
    std::int64_t below(std::int64_t bound) {  // by a product of 32 bits; its bias is below bound / 2^32
        return static_cast<std::int64_t>(((next() >> 32) * static_cast<std::uint64_t>(bound)) >> 32);
    }
};

template <class Real, class Normals>
void run(const Job& job, const double* given, double* out) {
    Normals normals(job.seed);
    std::vector<Real> data(given, given + job.number);
    const bool whole = job.batch == 0 || job.batch == job.number;
    const std::int64_t size = whole ? job.number : job.batch;
    const Real eps = job.step_size, decay = 1 - job.step_size * job.friction, shrink = 1 / job.prior_variance;
    const Real scale = static_cast<Real>(job.number) / size, noise = std::sqrt(job.noise_variance);
    const Real injected = std::sqrt(2 * (job.friction - job.noise_estimate) * job.step_size);
    Real m0 = out[0], m1 = out[1], r0 = normals(), r1 = normals();
    for (std::int64_t draw = 0; draw < job.draws; ++draw) {
        for (std::int64_t step = 0; step < job.steps; ++step) {
            m0 += eps * r0;
            m1 += eps * r1;
            if (!whole)  // the first n of a shuffle that goes on from the last one
                for (std::int64_t i = 0; i < size; ++i) std::swap(data[i], data[i + normals.below(job.number - i)]);
            const Real slope = m1 - m0, middle = (m0 + m1) / 2;
            Real weights = 0, weighted = 0, total = 0;  // of the first component
            for (std::int64_t i = 0; i < size; ++i) {
                const Real w = 1 / (1 + std::exp(slope * (data[i] - middle)));
                weights += w;
                weighted += w * data[i];
                total += data[i];
            }
            const Real g0 = shrink * m0 + scale * (weights * m0 - weighted);
            const Real g1 = shrink * m1 + scale * ((size - weights) * m1 - (total - weighted));
            r0 = decay * r0 - eps * g0 + injected * static_cast<Real>(normals());
            r1 = decay * r1 - eps * g1 + injected * static_cast<Real>(normals());
            if (noise > 0) {
                r0 -= eps * noise * static_cast<Real>(normals());
                r1 -= eps * noise * static_cast<Real>(normals());
            }
        }
        out[2 * draw] = m0;
        out[2 * draw + 1] = m1;
    }
}

// SGHMC on U(x) = -2x^2 + x^4 with gradients seen through N(0, noise_variance), one chain.
template <class Real, class Normals>
void run_double_well(const Job& job, double* out) {
    Normals normals(job.seed);
    const Real eps = job.step_size, decay = 1 - job.step_size * job.friction, noise = std::sqrt(job.noise_variance);
    const Real injected = std::sqrt(2 * (job.friction - job.noise_estimate) * job.step_size);
    Real x = out[0], r = normals();
    for (std::int64_t draw = 0; draw < job.draws; ++draw) {
        for (std::int64_t step = 0; step < job.steps; ++step) {
            x += eps * r;
            const Real gradient = 4 * x * (x * x - 1) + noise * static_cast<Real>(normals());
            r = decay * r - eps * gradient + injected * static_cast<Real>(normals());
        }
        out[draw] = x;
    }
}

extern "C" {
void mixture_plain(const Job* job, const double* data, double* out) { run<double, StandardNormals>(*job, data, out); }
void mixture_fast(const Job* job, const double* data, double* out) { run<float, SmallNormals>(*job, data, out); }
void well_plain(const Job* job, const double*, double* out) { run_double_well<double, StandardNormals>(*job, out); }
void well_fast(const Job* job, const double*, double* out) { run_double_well<float, SmallNormals>(*job, out); }
}
