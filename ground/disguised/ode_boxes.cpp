// defect: the space of ODE is the simple one, which tests every pair of boxes; a hash space tests neighbours
// kinds: slow-setting, full-scan-each-step
// guilty: dxSimpleSpace::collide, main
// gain: 87 %
// needs: ode
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ode/ode.h>
#include <vector>

static dWorldID world;
static dJointGroupID contacts;

static void near_callback(void *, dGeomID a, dGeomID b) {
    dBodyID first = dGeomGetBody(a), second = dGeomGetBody(b);
    if ((!first || !dBodyIsEnabled(first)) && (!second || !dBodyIsEnabled(second))) return;
    dContact contact[4];
    int n = dCollide(a, b, 4, &contact[0].geom, sizeof(dContact));
    for (int i = 0; i < n; ++i) {
        contact[i].surface.mode = dContactApprox1;
        contact[i].surface.mu = 0.8;
        dJointAttach(dJointCreateContact(world, contacts, &contact[i]), first, second);
    }
}

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    dInitODE();
    world = dWorldCreate();
    dWorldSetGravity(world, 0, 0, -9.81);
    dWorldSetAutoDisableFlag(world, 1);
    dSpaceID space = slow ? dSimpleSpaceCreate(nullptr) : dHashSpaceCreate(nullptr);
    contacts = dJointGroupCreate(0);
    dCreatePlane(space, 0, 0, 1, 0);
    std::vector<dBodyID> boxes;
    for (int i = 0; i < 1500; ++i) {
        dBodyID body = dBodyCreate(world);
        dMass mass;
        dMassSetBox(&mass, 200, 0.4, 0.4, 0.4);
        dBodySetMass(body, &mass);
        dBodySetPosition(body, 1.5 * (i % 39), 1.5 * (i / 39), 0.21 + 0.01 * (i % 7));
        dGeomSetBody(dCreateBox(space, 0.4, 0.4, 0.4), body);
        boxes.push_back(body);
    }
    double highest = 0;
    for (long step = 0; step != steps; ++step) {
        dSpaceCollide(space, nullptr, near_callback);
        dWorldQuickStep(world, 0.01);
        dJointGroupEmpty(contacts);
        for (dBodyID box : boxes) highest = std::max(highest, double(dBodyGetPosition(box)[2]));
    }
    std::printf("%g\n", highest);
}
