# defect: the chart of clearances to piers that never move is computed again in each step
# kinds: same-work-again
# guilty: Harbour.clearance, SwimmerEnv._chart
# phase: steady
# gain: 57
# needs: numpy
#
"""marlin: a vectorised swimmer environment and a small actor-critic, in numpy.

usage: marlin.py slow|fast [updates]
"""
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small
import numpy as np


class Harbour:
    """Quays, piers and currents; the swimmers move in a square of 40 m."""

    def __init__(self, seed, piers=60, cells=52):
        rng = np.random.default_rng(seed)
        self.piers = rng.uniform(3.0, 37.0, size=(piers, 2))
        self.radii = rng.uniform(0.3, 0.9, size=piers)
        self.cells = cells
        self.axis = (np.arange(cells) + 0.5) * (40.0 / cells)
        self.vortices = rng.uniform(5.0, 35.0, size=(6, 2))
        self.spin = rng.uniform(-1.0, 1.0, size=6)

    def clearance(self):
        """How far each cell of the chart is from the nearest pier."""
        gx, gy = np.meshgrid(self.axis, self.axis)
        dx = gx[:, :, None] - self.piers[None, None, :, 0]
        dy = gy[:, :, None] - self.piers[None, None, :, 1]
        gap = np.sqrt(dx * dx + dy * dy) - self.radii
        return gap.min(axis=2)

    def current(self, pos, t):
        d = pos[:, None, :] - self.vortices[None, :, :]
        r2 = (d * d).sum(axis=2) + 2.0
        strength = self.spin * (1.0 + 0.3 * np.sin(0.2 * t + np.arange(6)))
        u = (-d[:, :, 1] * strength / r2).sum(axis=1)
        v = (d[:, :, 0] * strength / r2).sum(axis=1)
        return np.stack([u, v], axis=1)


class SwimmerEnv:
    OBS = 24
    ACT = 2

    def __init__(self, lanes, keep_chart, seed=3):
        self.rng = np.random.default_rng(seed)
        self.lanes = lanes
        self.harbour = Harbour(seed)
        self.keep_chart = keep_chart
        self.chart = None
        self.pos = self.rng.uniform(2, 38, size=(lanes, 2))
        self.vel = np.zeros((lanes, 2))
        self.goal = self.rng.uniform(2, 38, size=(lanes, 2))
        self.age = np.zeros(lanes, dtype=np.int64)
        self.t = 0.0
        self.beams = np.linspace(0, 2 * np.pi, 16, endpoint=False)

    def _chart(self):
        if self.keep_chart:
            if self.chart is None:
                self.chart = self.harbour.clearance()
            return self.chart
        return self.harbour.clearance()

    def _sample(self, chart, pts):
        ij = np.clip((pts / 40.0 * self.harbour.cells).astype(np.int64), 0, self.harbour.cells - 1)
        return chart[ij[..., 1], ij[..., 0]]

    def _sonar(self):
        d = np.stack([np.cos(self.beams), np.sin(self.beams)], axis=1)
        o = self.pos[:, None, None, :] - self.harbour.piers[None, None, :, :]
        b = (o * d[None, :, None, :]).sum(axis=3)
        c = (o * o).sum(axis=3) - self.harbour.radii**2
        disc = b * b - c
        hit = np.where(disc > 0, -b - np.sqrt(np.maximum(disc, 0)), 10.0)
        hit = np.where(hit > 0, hit, 10.0)
        return np.minimum(hit.min(axis=2), 10.0) / 10.0

    def observe(self):
        to = self.goal - self.pos
        dist = np.sqrt((to * to).sum(axis=1, keepdims=True))
        cur = self.harbour.current(self.pos, self.t)
        return np.concatenate([self._sonar(), to / (dist + 1e-6), dist / 40.0, self.vel, cur, self.age[:, None] / 200.0], axis=1)

    def step(self, action):
        self.t += 0.1
        self.age += 1
        push = np.clip(action, -1, 1)
        for _ in range(4):
            drift = self.harbour.current(self.pos, self.t)
            self.vel += 0.025 * (2.0 * push - 0.8 * (self.vel - 0.5 * drift))
            self.pos = np.clip(self.pos + 0.025 * self.vel, 0.5, 39.5)
        before = np.sqrt(((self.goal - self.pos) ** 2).sum(axis=1))
        chart = self._chart()
        gap = self._sample(chart, self.pos)
        ahead = self._sample(chart, self.pos + self.vel)
        crash = gap < 0.05
        reward = -0.02 * before - 0.5 * np.exp(-2.0 * np.maximum(gap, 0)) - 0.1 * (ahead < 0.2) - 2.0 * crash
        arrived = before < 1.0
        reward = reward + 10.0 * arrived
        done = arrived | crash | (self.age > 200)
        if done.any():
            n = int(done.sum())
            self.pos[done] = self.rng.uniform(2, 38, size=(n, 2))
            self.goal[done] = self.rng.uniform(2, 38, size=(n, 2))
            self.vel[done] = 0
            self.age[done] = 0
        return self.observe(), reward, done


class Net:
    def __init__(self, sizes, rng):
        self.w = [rng.normal(0, 1 / np.sqrt(a), size=(a, b)) for a, b in zip(sizes, sizes[1:])]
        self.b = [np.zeros(b) for b in sizes[1:]]
        self.m = [np.zeros_like(p) for p in self.w + self.b]
        self.v = [np.zeros_like(p) for p in self.w + self.b]
        self.k = 0

    def forward(self, x, keep=None):
        for i, (w, b) in enumerate(zip(self.w, self.b)):
            if keep is not None:
                keep.append(x)
            x = x @ w + b
            if i + 1 < len(self.w):
                x = np.tanh(x)
        return x

    def backward(self, keep, grad):
        gw, gb = [None] * len(self.w), [None] * len(self.b)
        for i in reversed(range(len(self.w))):
            gw[i] = keep[i].T @ grad
            gb[i] = grad.sum(axis=0)
            if i:
                grad = (grad @ self.w[i].T) * (1 - keep[i] ** 2)
        return gw + gb

    def apply(self, grads, lr=3e-4):
        self.k += 1
        for j, (p, g) in enumerate(zip(self.w + self.b, grads)):
            self.m[j] = 0.9 * self.m[j] + 0.1 * g
            self.v[j] = 0.999 * self.v[j] + 0.001 * g * g
            mh = self.m[j] / (1 - 0.9**self.k)
            vh = self.v[j] / (1 - 0.999**self.k)
            p -= lr * mh / (np.sqrt(vh) + 1e-8)


class RunningNorm:
    def __init__(self, n):
        self.mean, self.var, self.count = np.zeros(n), np.ones(n), 1e-4

    def update(self, x):
        m, v, n = x.mean(axis=0), x.var(axis=0), len(x)
        d = m - self.mean
        total = self.count + n
        self.mean = self.mean + d * n / total
        self.var = (self.var * self.count + v * n + d * d * self.count * n / total) / total
        self.count = total

    def __call__(self, x):
        return np.clip((x - self.mean) / np.sqrt(self.var + 1e-8), -5, 5)


class Rollout:
    def __init__(self, horizon, lanes, obs):
        self.obs = np.zeros((horizon, lanes, obs))
        self.act = np.zeros((horizon, lanes, 2))
        self.logp = np.zeros((horizon, lanes))
        self.value = np.zeros((horizon, lanes))
        self.reward = np.zeros((horizon, lanes))
        self.done = np.zeros((horizon, lanes), dtype=bool)
        self.n = 0

    def put(self, obs, act, logp, value, reward, done):
        i = self.n
        self.obs[i], self.act[i], self.logp[i] = obs, act, logp
        self.value[i], self.reward[i], self.done[i] = value, reward, done
        self.n += 1

    def advantages(self, last):
        adv = np.zeros_like(self.reward)
        run = np.zeros(self.reward.shape[1])
        for i in reversed(range(self.n)):
            nxt = last if i == self.n - 1 else self.value[i + 1]
            live = 1.0 - self.done[i]
            delta = self.reward[i] + 0.99 * nxt * live - self.value[i]
            run = delta + 0.99 * 0.95 * live * run
            adv[i] = run
        return adv


class Trainer:
    def __init__(self, keep_chart, lanes=24, horizon=64):
        rng = np.random.default_rng(1)
        self.rng = rng
        self.env = SwimmerEnv(lanes, keep_chart)
        self.actor = Net([SwimmerEnv.OBS, 64, 64, 2], rng)
        self.critic = Net([SwimmerEnv.OBS, 64, 64, 1], rng)
        self.norm = RunningNorm(SwimmerEnv.OBS)
        self.horizon, self.lanes = horizon, lanes
        self.obs = self.env.observe()
        self.returns = []

    def collect(self):
        roll = Rollout(self.horizon, self.lanes, SwimmerEnv.OBS)
        for _ in range(self.horizon):
            self.norm.update(self.obs)
            x = self.norm(self.obs)
            mean = self.actor.forward(x)
            noise = self.rng.normal(size=mean.shape)
            act = mean + 0.5 * noise
            logp = -0.5 * (noise**2).sum(axis=1)
            value = self.critic.forward(x)[:, 0]
            nxt, reward, done = self.env.step(act)
            roll.put(x, act, logp, value, reward, done)
            self.obs = nxt
        return roll

    def learn(self, roll):
        last = self.critic.forward(self.norm(self.obs))[:, 0]
        adv = roll.advantages(last)
        ret = adv + roll.value
        flat = lambda a: a.reshape(-1, *a.shape[2:])
        obs, act, logp, adv, ret = map(flat, (roll.obs, roll.act, roll.logp, adv, ret))
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        for _ in range(4):
            order = self.rng.permutation(len(obs))
            for part in np.array_split(order, 4):
                keep = []
                mean = self.actor.forward(obs[part], keep)
                z = (act[part] - mean) / 0.5
                ratio = np.exp(np.clip(-0.5 * (z**2).sum(axis=1) - logp[part], -5, 5))
                use = np.where(np.abs(ratio - 1) < 0.2, ratio, 0.0)
                grad = -(use * adv[part])[:, None] * z / 0.5 / len(part)
                self.actor.apply(self.actor.backward(keep, grad))
                keep = []
                v = self.critic.forward(obs[part], keep)
                self.critic.apply(self.critic.backward(keep, (v - ret[part][:, None]) / len(part)))
        self.returns.append(float(roll.reward.mean()))

    def evaluate(self):
        x = self.norm(self.obs)
        a = self.actor.forward(x)
        return float(np.abs(a).mean())


def main():
    keep = sys.argv[1] == "fast"
    updates = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    trainer = Trainer(keep)
    tone = 0.0
    for u in range(updates):
        roll = trainer.collect()
        trainer.learn(roll)
        if u % 5 == 0:
            tone += trainer.evaluate()
    print("mean reward %.9g, tone %.9g" % (float(np.mean(trainer.returns)), tone))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
