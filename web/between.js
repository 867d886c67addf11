// Between two frames of a scene whose steps take long: particles go to their new places along their velocities, solids
// along the line between their poses. The page shows the last step as it comes about, not its end at once. Where the next
// frame is late they go on, half a step at most, so that every picture is a new one.
const longest = 1000, beyond = 0.5, behind = 1.5; // ms; spans after and before the time of a frame that can be shown

export class Between {
  constructor() {
    Object.assign(this, { arrival: 0, period: 0, span: 0, start: 0, time: 0, before: null, isOff: false, isRunning: true });
  }

  take(old, frame, now = performance.now()) {
    const isNext = old && old.scene === frame.scene && frame.time > old.time && frame.velocities;
    const wait = Math.min(now - this.arrival, longest), shown = this.at(now), wasOn = this.period > 0;
    this.arrival = now;
    this.time = frame.time;
    this.span = isNext ? frame.time - old.time : 0;
    this.period = !isNext ? 0 : wasOn ? 0.75 * this.period + 0.25 * wait : wait;
    this.start = Math.min(frame.time, Math.max(wasOn ? shown : 0, frame.time - (wasOn ? behind : 1) * this.span));
    this.before = isNext && old.solids === frame.solids ? old.poses : null;
  }

  /** The time (s) of the scene that is shown: that of the frame when the next one is due. */
  at(now = performance.now()) {
    if (!(this.period > 0) || this.isOff) return this.time;
    const last = this.time + (this.isRunning ? beyond * this.span : 0);
    return Math.min(last, this.start + ((this.time - this.start) * (now - this.arrival)) / this.period);
  }

  isOn(now = performance.now()) {
    const at = this.at(now), isNew = at !== this.last;
    this.last = at;
    return isNew;
  }

  /** Seconds before the time of the frame. */
  back() {
    return this.time - this.at();
  }

  pose(now, index) {
    const phase = this.span > 0 ? 1 - this.back() / this.span : 1;
    return phase !== 1 && this.before ? now.map((x, i) => this.before[12 * index + i] * (1 - phase) + x * phase) : now;
  }
}
