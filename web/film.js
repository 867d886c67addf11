// Films of the view (WebM, by the browser's own recorder), and pictures of single frames in one file.
import { zip } from "./zip.js";

const most = 2000; // pictures of one recording

export class Film {
  constructor(page, { film, frames, download }) {
    Object.assign(this, { page, film, frames, download, recorder: null, pictures: null, last: -1 });
    film.onclick = () => (this.recorder ? this.recorder.stop() : this.start());
    frames.onclick = () => (this.pictures ? this.finish() : this.collect());
    film.disabled = typeof MediaRecorder === "undefined";
  }

  start() {
    const parts = [], stream = this.page.view.canvas.captureStream(30);
    this.recorder = new MediaRecorder(stream, { videoBitsPerSecond: 8e6 });
    this.recorder.ondataavailable = ({ data }) => data.size && parts.push(data);
    this.recorder.onstop = () => {
      stream.getTracks().forEach((track) => track.stop());
      this.download(new Blob(parts, { type: this.recorder.mimeType || "video/webm" }), "selkie.webm");
      this.recorder = null;
      this.film.textContent = "Record a film";
    };
    this.recorder.start(1000);
    this.film.textContent = "End the film";
  }

  collect() {
    this.pictures = [];
    this.last = -1;
    this.frames.textContent = "Download the frames";
    this.page.redraw();
  }

  /** After each drawing: a picture for every frame of the scene's own rate. */
  take(frame) {
    if (!this.pictures || !frame || this.pictures.length >= most) return;
    const number = Math.floor(frame.time * this.page.scene.fps + 1e-6);
    if (number === this.last) return;
    this.last = number;
    const name = `frame_${String(number).padStart(6, "0")}.png`;
    this.pictures.push(new Promise((done) => this.page.view.canvas.toBlob(async (blob) => done({ name, bytes: new Uint8Array(await blob.arrayBuffer()) }))));
    this.frames.textContent = `Download ${this.pictures.length} frames`;
  }

  async finish() {
    const files = await Promise.all(this.pictures);
    this.pictures = null;
    this.frames.textContent = "Record frames";
    if (files.length) this.download(new Blob([zip(files)], { type: "application/zip" }), "selkie_frames.zip");
  }
}
