// Turns a prim and changes its colour at random intervals of one to five seconds.
integer turns = 0;
integer pulses = 0;
float angle = 0.0;
float speed = $SPEED;
float full_circle = 6.283185307179586;
float red = 0.5;
float green = 0.25;
float blue = 0.75;

default
{
    state_entry()
    {
        angle = llFrand(full_circle);
        llSetRot(angle);
        llSetTimerEvent(llFrand(5.0));
    }

    timer()
    {
        // A little further each time, and never beyond a full circle.
        float step = speed * (0.5 + llFrand(1.0));
        angle = angle + step;
        while (angle >= full_circle)
        {
            angle = angle - full_circle;
            turns = turns + 1;
        }
        llSetRot(angle);

        // The colour follows the angle, and pulses every tenth time.
        red = 0.5 + 0.5 * llSin(angle);
        green = 0.5 + 0.5 * llSin(angle + full_circle / 3.0);
        blue = 0.5 + 0.5 * llSin(angle - full_circle / 3.0);
        pulses = pulses + 1;
        if (pulses == 10)
        {
            red = 1.0 - red;
            green = 1.0 - green;
            blue = 1.0 - blue;
            pulses = 0;
        }
        else if (turns > 1000 && pulses < 0)
        {
            turns = 0;
        }
        llSetColor(red, green, blue);
        llSetTimerEvent(1.0 + llFrand(4.0));
    }
}
