/**
 * The live stream of the table's states, kept open for as long as the page is looked at.
 *
 * A browser's EventSource gives up for good on any answer that is not an event stream (a proxy's 502, a
 * portal's 200), and waits for ever for a server that hangs. So it is watched: no word for twelve seconds, or
 * none within five of opening, and it is thrown away and opened anew, as it is two seconds after an error.
 * A state is always whole, so opening anew is all there is to catching up.
 *
 * A page that nobody has seen for a minute lets its stream go, and takes it up at once when it is seen again:
 * a sleeping browser costs the table nothing, and forgotten tabs do not use up the six connections that a
 * browser has for one address.
 */

const SILENCE_MS = 12000;
const OPENING_MS = 5000;
const AGAIN_MS = 2000;
const UNSEEN_MS = 60000;
const LATE_MS = 7500;
const WATCH_MS = 500;

export class Stream {
  /**
   * @param {{state: (value: object) => void, about: (value: object) => void, beat: (now: number) => void,
   *   opened: () => void, link: (link: string, age_s: number) => void}} heard
   *   `link` is told `connecting` (nothing was ever heard), `live`, `stale` (with the age of what is shown) or
   *   `asleep`; again each second while stale.
   */
  constructor(heard) {
    this.heard = heard;
    this.source = null;
    this.opened_at = 0;
    this.heard_at = null;
    this.spoke = false;
    this.failed = false;
    this.again_at = null;
    this.unseen_since = null;
    this.told = "";
    this.watched_at = Date.now();
    this.watch = setInterval(() => this.look(), WATCH_MS);
    document.addEventListener("visibilitychange", () => this.seen());
    window.addEventListener("online", () => this.reopen());
    window.addEventListener("pageshow", (event) => event.persisted && this.reopen());
    this.seen();
    this.open();
  }

  open() {
    this.shut();
    this.again_at = null;
    this.spoke = false;
    this.opened_at = performance.now();
    const source = new EventSource("/live");
    this.source = source;
    const hear = (name, take) =>
      source.addEventListener(name, (event) => {
        if (this.source !== source) return;
        let value;
        try {
          value = JSON.parse(event.data);
        } catch {
          return; // Not ours: the watch will notice that nothing of ours comes.
        }
        this.word();
        take(value);
      });
    hear("state", (value) => this.heard.state(value));
    hear("about", (value) => this.heard.about(value));
    hear("beat", (value) => this.heard.beat(value.now));
    source.addEventListener("error", () => {
      if (this.source !== source) return;
      this.failed = true;
      this.shut();
      this.again_at = performance.now() + AGAIN_MS * (0.75 + Math.random() / 2);
      this.look();
    });
  }

  /** Something of the table's own has come. */
  word() {
    this.heard_at = performance.now();
    this.failed = false;
    if (!this.spoke) {
      this.spoke = true;
      this.heard.opened();
    }
    this.tell();
  }

  shut() {
    if (this.source) this.source.close();
    this.source = null;
  }

  reopen() {
    if (!document.hidden) this.open();
  }

  seen() {
    this.unseen_since = document.hidden ? performance.now() : null;
    // A page that was away takes no chances: it may have been frozen with a stream that is long dead.
    if (!document.hidden && (!this.source || this.silent_ms() > LATE_MS)) this.open();
  }

  silent_ms() {
    return this.heard_at === null ? Infinity : performance.now() - this.heard_at;
  }

  /** Twice a second: is the stream alive, and has this machine slept? */
  look() {
    const now = performance.now();
    const slept = Date.now() - this.watched_at > 5000;
    this.watched_at = Date.now();
    if (this.unseen_since !== null && now - this.unseen_since > UNSEEN_MS) {
      this.shut();
      this.again_at = null;
    } else if (this.again_at !== null) {
      if (now >= this.again_at) this.open();
    } else if (!this.source || slept) {
      if (!document.hidden) this.open();
    } else if (now - this.opened_at > (this.spoke ? SILENCE_MS : OPENING_MS)) {
      if (!this.spoke || this.silent_ms() > SILENCE_MS) {
        this.failed = true;
        this.open();
      }
    }
    this.tell();
  }

  tell() {
    const age_s = this.heard_at === null ? 0 : this.silent_ms() / 1000;
    let link = "live";
    if (this.unseen_since !== null && !this.source && this.again_at === null) link = "asleep";
    else if (this.heard_at === null) link = this.failed ? "stale" : "connecting";
    else if (age_s * 1000 > LATE_MS || (this.failed && age_s > 1)) link = "stale";
    const said = link === "stale" ? `stale ${Math.floor(age_s)} ${this.heard_at === null}` : link;
    if (said === this.told) return;
    this.told = said;
    this.heard.link(link, this.heard_at === null ? null : age_s);
  }
}
