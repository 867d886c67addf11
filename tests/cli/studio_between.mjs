// What the page shows of a simulation whose states come too slowly, and not evenly: 30 new pictures a second at least.
// Usage: node studio_between.mjs
import { readFileSync } from "node:fs";

// Node takes the file for a module by this address only.
const source = readFileSync(new URL("../../web/between.js", import.meta.url), "utf8");
const { Between } = await import(`data:text/javascript,${encodeURIComponent(source)}`);

let failures = 0;
const check = (what, holds, shown) => {
  failures += !holds;
  console.log(`${holds ? "ok   " : "FAIL "} ${what}: ${shown}`);
};

/** States after these waits (ms), each 20 ms of the scene later; a picture every 16.7 ms, where it would be a new one. */
function play(waits) {
  const between = new Between(), pictures = [], velocities = new Int8Array(1), arrivals = [];
  waits.reduce((sum, wait) => (arrivals.push(sum + wait), sum + wait), 0);
  let frame = null, number = 0, late = 0;
  for (let now = 0; now < arrivals.at(-1); now += 1000 / 60) {
    while (arrivals[number] <= now) {
      const next = { scene: 1, solids: 1, time: 0.02 * ++number, velocities, poses: new Float32Array(12) };
      between.take(frame, next, now);
      frame = next;
    }
    if (between.isOn(now) && number > 2) pictures.push({ now, at: between.at(now) });
    if (frame && number > 2) late = Math.max(late, Math.abs(between.at(now) - frame.time) / 0.02);
  }
  const steps = pictures.slice(1).map(({ at }, i) => at - pictures[i].at);
  const seconds = (arrivals.at(-1) - arrivals[2]) / 1000;
  return { rate: pictures.length / seconds, back: Math.min(...steps), most: Math.max(...steps), late };
}

const even = play(Array(60).fill(70)), uneven = play(Array.from({ length: 60 }, (_, i) => 70 + 25 * Math.sin(2.4 * i)));
for (const [name, { rate, back, most, late }] of Object.entries({ even, uneven })) {
  check(`${name} states: new pictures a second`, rate > 50, rate.toFixed(1));
  check(`${name} states: it never goes back`, back > 0, back);
  check(`${name} states: no jump is half a state`, most < 0.01, most.toFixed(4));
  check(`${name} states: what is shown is near the newest state`, late <= 1.5, late.toFixed(2));
}

// A simulation that pauses: the picture ends at its last state.
const between = new Between(), at = (time) => ({ scene: 1, solids: 1, time, velocities: new Int8Array(1), poses: [] });
between.take(null, at(1), 0);
between.take(at(1), at(2), 100);
between.isRunning = false;
check("a pause ends at the last state", between.at(1000) === 2, between.at(1000));
process.exit(failures ? 1 : 0);
