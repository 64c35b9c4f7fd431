// defect: the shadow of a height map is spread column by column, though its rows stand side by side in memory
// kinds: matrix-by-columns
// guilty: spread_shadow
// build: -O2 -g
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE = 1500, HIGH = 1100 };

struct map {
    double height[HIGH][WIDE];
    double shadow[HIGH][WIDE];
};

__attribute__((noinline)) static void turn_sun(double *light, double hour) {
    for (int i = 0; i < 60000; ++i) light[i % 64] += sin(hour + i * 0.001);
}

__attribute__((noinline)) static void spread_shadow(struct map *map, int slow) {
    if (slow) {
        for (int east = 1; east < WIDE - 1; ++east)
            for (int north = 0; north < HIGH; ++north) {
                double before = map->shadow[north][east - 1] * 0.9;
                map->shadow[north][east] = before > map->height[north][east] ? before : map->height[north][east];
            }
        return;
    }
    for (int north = 0; north < HIGH; ++north)
        for (int east = 1; east < WIDE - 1; ++east) {
            double before = map->shadow[north][east - 1] * 0.9;
            map->shadow[north][east] = before > map->height[north][east] ? before : map->height[north][east];
        }
}

int main(int argc, char **argv) {
    struct map *map = calloc(1, sizeof *map);
    double light[64] = {0};
    int slow = argc > 1 && !strcmp(argv[1], "slow");
    for (int north = 0; north < HIGH; ++north)
        for (int east = 0; east < WIDE; ++east) map->height[north][east] = sin(north * 0.1) * cos(east * 0.07);
    for (double hour = 0;; hour += 0.1) {
        turn_sun(light, hour);
        map->height[(int)(fabs(light[3])) % HIGH][5] += 0.001;
        spread_shadow(map, slow);
    }
}
