/*
 * Keeps the page up to date: the KI says that something has changed, the page fetches itself again, and only what
 * differs is put in its place. Without this script the page is whole and stands still.
 *
 * The browser's own EventSource gives up for good on an answer that is no stream (a proxy's, a portal's), and does
 * not notice a server that only hangs. So this page listens for the beat, and opens a new one when it stays away.
 */

const QUIET_MS = 12_000; // longer without a word from the KI: the page is not live
const AGAIN_MS = 3_000; // between two tries to reach it
const FETCH_MS = 8_000;

const content = document.getElementById("content");
const live = document.getElementById("live");
const announced = document.getElementById("announced");
const calm = matchMedia("(prefers-reduced-motion: reduce)");

let stream = null;
let heard = 0; // when the KI was heard last, 0: not yet
let opened = 0; // when the stream was opened
let told = content.dataset.state; // what the KI says it is at
let shown = told; // what this page shows
let fetching = false;
let tryFrom = 0;
let fault = ""; // why the KI, which is there, cannot say what is new

function listen() {
  stream?.close();
  opened = performance.now();
  stream = new EventSource("/live");
  stream.addEventListener("beat", hear);
  stream.addEventListener("changed", (event) => {
    hear();
    told = JSON.parse(event.data);
    catchUp();
  });
}

function hear() {
  heard = performance.now();
  say();
}

async function catchUp() {
  if (fetching || shown === told || performance.now() < tryFrom) return;
  fetching = true;
  const wanted = told;
  try {
    const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(FETCH_MS) });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("content");
    fault = (answer.status >= 500 && fresh?.dataset.fault) || "";
    say();
    // A portal's page is no page of ours, and neither is an answer that asks for patience.
    if (!fresh?.hasAttribute("data-state") || answer.status >= 500) throw new Error("not our page");
    show(fresh, page.title);
    shown = wanted;
  } catch {
    tryFrom = performance.now() + AGAIN_MS;
  } finally {
    fetching = false;
  }
}

function show(fresh, title) {
  const focused = document.activeElement;
  const before = places();
  const said = content.dataset.announced;
  renew(content, fresh);
  document.title = title;
  glide(before);
  if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
  if (content.dataset.announced && content.dataset.announced !== said) {
    announced.textContent = content.dataset.announced;
  }
}

/* Make `old` what `fresh` is, keeping every node that can stay. */
function renew(old, fresh) {
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (fresh.dataset?.list && old.children.length && fresh.children.length) {
    renewList(old, fresh);
    return;
  }
  const ones = [...old.childNodes];
  const others = [...fresh.childNodes];
  const alike = ones.length === others.length && ones.every((one, at) => one.nodeName === others[at].nodeName);
  if (!alike) {
    old.replaceChildren(...others.map((each) => document.importNode(each, true)));
    return;
  }
  ones.forEach((one, at) => {
    if (one.isEqualNode(others[at])) return;
    if (one.nodeType === Node.ELEMENT_NODE) renew(one, others[at]);
    else one.nodeValue = others[at].nodeValue;
  });
}

function renewList(old, fresh) {
  const known = new Map([...old.children].map((each) => [each.dataset.key, each]));
  let place = old.firstElementChild;
  for (const other of fresh.children) {
    let one = known.get(other.dataset.key);
    known.delete(other.dataset.key);
    if (one) {
      one.classList.remove("fresh");
      if (!one.className) one.removeAttribute("class");
      if (!one.isEqualNode(other)) {
        renew(one, other);
        one.classList.add("fresh");
      }
    } else {
      one = document.importNode(other, true);
      one.classList.add("fresh");
    }
    if (one === place) place = place.nextElementSibling;
    else old.insertBefore(one, place);
  }
  for (const gone of known.values()) gone.remove();
}

/* Lines that have moved glide to where they are now. */
function places() {
  return new Map([...content.querySelectorAll("[data-list] > [data-key]")].map((each) => [each, each.offsetTop]));
}

function glide(before) {
  if (calm.matches) return;
  for (const [each, top] of before) {
    const by = each.isConnected ? top - each.offsetTop : 0;
    if (by) {
      each.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], { duration: 500, easing: "ease" });
    }
  }
}

function say() {
  const quiet = heard ? performance.now() - heard : 0;
  const lost = quiet > (stream?.readyState === EventSource.OPEN ? QUIET_MS : AGAIN_MS);
  const state = !heard ? "unknown" : lost || fault ? "no" : "yes";
  const words = {
    unknown: "looking for the KI…",
    yes: "live",
    no: lost ? `not live: last heard ${span(quiet)} ago` : `not up to date: ${fault}`,
  }[state];
  if (live.dataset.live !== state) live.dataset.live = state;
  if (live.textContent !== words) live.textContent = words;
}

function span(ms) {
  const s = Math.floor(ms / 1000);
  return s < 120 ? `${s} s` : s < 7200 ? `${Math.floor(s / 60)} min` : `${Math.floor(s / 3600)} h`;
}

setInterval(() => {
  const now = performance.now();
  say();
  const overdue = now - Math.max(heard, opened) > QUIET_MS;
  const closed = stream.readyState === EventSource.CLOSED && now - opened > AGAIN_MS;
  if (overdue || closed) listen();
  catchUp();
}, 1000);

addEventListener("pageshow", (event) => {
  if (event.persisted) listen();
});
listen();
say();
