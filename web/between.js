// Between two frames of a scene whose steps take long: particles go to their new places along their velocities, solids
// along the line between their poses. The page shows the last step as it comes about, not its end at once.
const longest = 1000; // ms

export class Between {
  constructor() {
    Object.assign(this, { arrival: 0, period: 0, span: 0, before: null });
  }

  take(old, frame) {
    const now = performance.now(), isNext = old && old.scene === frame.scene && frame.time > old.time && frame.velocities;
    this.period = isNext ? Math.min(now - this.arrival, longest) : 0;
    this.span = isNext ? frame.time - old.time : 0;
    this.before = isNext && old.solids === frame.solids ? old.poses : null;
    this.arrival = now;
  }

  /** 0 when a frame arrives, 1 when the next one is due. */
  phase() {
    return this.period > 0 && !this.isOff ? Math.min(1, (performance.now() - this.arrival) / this.period) : 1;
  }

  isOn() {
    const isOn = this.phase() < 1, was = this.wasOn;
    this.wasOn = isOn;
    return isOn || was; // the end is drawn too
  }

  /** Seconds before the time of the frame. */
  back() {
    return (1 - this.phase()) * this.span;
  }

  pose(now, index) {
    const phase = this.phase();
    return phase < 1 && this.before ? now.map((x, i) => this.before[12 * index + i] * (1 - phase) + x * phase) : now;
  }
}
