/**
 * What the page says: one sentence for what to do now, a word for each seat, and what is read aloud.
 *
 * Pure: from a state (`heek.web.state`), what this browser may do (`heek.web.about`) and the table's time in
 * seconds to text. Nothing here touches the page.
 */

export const KINDS = ["pen", "page", "beetle"];

const IN_ROUND = ["throw", "countdown", "settle"];
const VOIDS = {
  idle: "nobody threw for too long",
  empty: "too few are left to play",
  operator: "the operator reset the table",
  power: "the power was cut",
  sudden_death_limit: "sudden death went on without end",
  winnerless_limit: "too many rounds had no winner",
};
const NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];

/** Is a throw to be made, or has it been made and not been shown? */
export const inRound = (state) => IN_ROUND.includes(state.phase);

/** Whole seconds until `until`, begun ones counted; null without an end. */
export const secondsUntil = (until, now) => (until === null ? null : Math.max(0, Math.ceil(until - now - 1e-6)));

const sits = (seat) => seat.state !== "absent" && seat.state !== "free";
const free = (seat) => seat.state === "free";

/** A seat as people call it: by its player's name where it has one. */
export function called(seat) {
  if (seat.name) return seat.name;
  return seat.bot ? `the bot at seat ${seat.seat}` : `seat ${seat.seat}`;
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** “seats 2, 3 and 5”; names where there are names. */
export function listed(seats) {
  if (seats.some((seat) => seat.name)) return joined(seats.map(called));
  return `seat${seats.length === 1 ? "" : "s"} ${joined(seats.map((seat) => String(seat.seat)))}`;
}

function joined(words) {
  return words.length < 2 ? (words[0] ?? "nobody") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** “three pages”. */
export function counted(count, kind) {
  return `${NUMBERS[count] ?? count} ${kind}${count === 1 ? "" : "s"}`;
}

const seconds = (left) => `${left} second${left === 1 ? "" : "s"}`;

/** The state of one seat in a word or two, without what it has thrown before that is shown. */
export function seatWord(seat, state, now, beat) {
  if (seat.state === "absent") return "no station";
  if (seat.leaves_at !== null) return `stands up in ${secondsUntil(seat.leaves_at, now)}`;
  if (seat.state === "free") return "free";
  if (state.phase === "match_over" || state.phase === "reveal") {
    if (state.phase === "match_over" && beat === "won") return seat.won_match ? "wins the match" : "";
    if (seat.throw === null) return seat.in_round ? "no throw" : "watches";
    if (beat === "throws") return seat.throw;
    if (seat.won_round && !state.sudden_death && beat === "won") return `wins a ${seat.throw}`;
    return seat.won_round ? `${seat.throw}, wins` : seat.throw;
  }
  if (seat.state === "unconfirmed") return "press to stay";
  if (inRound(state)) {
    if (!seat.in_round) return "watches";
    return seat.thrown ? "has thrown" : "to throw";
  }
  return seat.state === "ready" ? "ready" : "sits";
}

/** How the last collection of a winner reads: “three pages”; null if there is none. */
function best(seat) {
  if (!seat?.collection) return null;
  const kind = KINDS.reduce((most, each) => (seat.collection[each] > seat.collection[most] ? each : most));
  return counted(seat.collection[kind], kind);
}

/** Who won the round that is shown, and with what. */
export function roundWords(state) {
  const winners = state.seats.filter((seat) => seat.won_round);
  if (winners.length === 0) return "Nobody wins this round.";
  return `${capital(listed(winners))} win${winners.length === 1 ? "s" : ""} with ${
    winners.length === 1 ? `a ${winners[0].throw}` : `${winners[0].throw}s`
  }.`;
}

/** How the match ended. */
export function matchWords(state) {
  if (state.winner === null) {
    return `The match is void: ${VOIDS[state.void] ?? state.void ?? "it was broken off"}.`;
  }
  const winner = state.seats[state.winner - 1];
  const how = {
    three: best(winner),
    total: "the most in all",
    sudden_death: "by sudden death",
    walkover: "the others have left",
  }[state.by];
  return `${capital(called(winner))} wins the match${how ? `: ${how}` : ""}.`;
}

/**
 * The one sentence that says what to do now, and a quieter line under it.
 *
 * `own` is the seat that this browser plays (null: it shows the table, or may press everywhere).
 * @returns {{sentence: string, hint: string, yours: boolean}} `yours`: something is to be done
 */
export function sentence(state, about, now, own) {
  const presses = about !== null && about.press !== "none";
  if (about?.phone && own === null) {
    return { sentence: "Tap the seat that is yours.", hint: "Your phone then plays that seat, and no other.", yours: true };
  }
  const me = own === null ? null : state.seats[own - 1];
  const seated = state.seats.filter(sits);
  const open = state.seats.filter(free);
  const left = secondsUntil(state.until, now);
  switch (state.phase) {
    case "attract":
      if (me) return { sentence: "Press any of your buttons to sit down.", hint: "", yours: true };
      if (!presses) return { sentence: "Press any button at the table to sit down.", hint: "", yours: false };
      return {
        sentence: "Press any button to sit down.",
        hint: about.bots ? "Alone? Sit down first; bots can take the other seats." : "It takes two to play, and five to fill it.",
        yours: true,
      };
    case "lobby": {
      const waited = seated.filter((seat) => seat.state === "unconfirmed");
      if (waited.length > 0) {
        const wait = left === null ? "" : `${seconds(left)} left to stay.`;
        if (me && me.state !== "unconfirmed") return { sentence: "You stay. The others have to press as well.", hint: wait, yours: false };
        return { sentence: `Press ${me ? "a button" : "at your seat"} to play again.`, hint: `${wait} Who does not press stands up.`.trim(), yours: presses };
      }
      if (me && free(me)) return { sentence: "Press any of your buttons to sit down.", hint: "", yours: true };
      if (seated.length < 2) {
        const bots = state.bots_at === null ? "" : ` Bots take the others in ${seconds(secondsUntil(state.bots_at, now))}.`;
        const ask = about?.bots && state.bots_allowed ? ", or let bots fill them" : "";
        return {
          sentence: "One more is needed.",
          hint: open.length === 0 ? "" : bots ? `Press a button at another seat.${bots}` : `Press a button at another seat${ask}.`,
          yours: presses,
        };
      }
      if (me?.state === "ready") return { sentence: "You are ready.", hint: left === null ? "" : `The match begins in ${seconds(left)}, or when all are ready.`, yours: false };
      return {
        sentence: left === null ? "The match is about to begin." : `The match begins in ${seconds(left)}.`,
        hint: `${me ? "Press again" : "Press again at every seat"} to begin at once.`,
        yours: false,
      };
    }
    case "resume":
      return {
        sentence: "The power was cut. Press to go on.",
        hint: left === null ? "" : `${seconds(left)} left; who does not press stands up.`,
        yours: me ? me.state === "unconfirmed" : presses,
      };
    case "throw":
    case "countdown":
    case "settle": {
      const late = state.seats.filter((seat) => seat.in_round && !seat.thrown);
      const tied = state.sudden_death ? `Sudden death: ${listed(state.seats.filter((seat) => seat.in_round))}.` : "";
      if (late.length === 0 || state.phase === "settle") return { sentence: "All is thrown.", hint: tied, yours: false };
      if (me && !me.in_round) {
        return { sentence: free(me) ? "A match is running." : "You watch this one.", hint: tied || "Your seat is free after it.", yours: false };
      }
      if (me?.thrown) return { sentence: "You have thrown.", hint: tied || `Waiting for ${listed(late)}.`, yours: false };
      return {
        sentence: state.phase === "throw" ? "Throw: press pen, page or beetle." : "Throw before the ring is empty.",
        hint: tied || (state.phase === "throw" ? "The first throw starts the countdown." : `Waiting for ${listed(late)}.`),
        yours: presses,
      };
    }
    case "reveal":
      return { sentence: roundWords(state), hint: state.sudden_death ? "Sudden death." : "", yours: false };
    case "match_over": {
      const stay = state.void === "idle" || state.void === "operator" ? "" : left === null ? "" : `Play again in ${seconds(left)}.`;
      return { sentence: matchWords(state), hint: stay, yours: false };
    }
    default:
      return { sentence: "", hint: "", yours: false };
  }
}

/** A seat's buttons that have this fault: `flood` (ignored) or `chatter` (worn, counts). */
export function withFault(seat, fault) {
  return KINDS.filter((kind) => seat.faults[kind] === fault);
}

/** What is wrong with a button, in a word; empty: nothing. */
export function troubleWord(seat, kind) {
  if (seat.stuck.includes(kind)) return "stuck";
  return { flood: "ignored", chatter: "worn" }[seat.faults[kind]] ?? "";
}

/** What is wrong at a seat: “pen, page stuck; beetle worn”; empty: nothing. */
export function troubleWords(seat) {
  if (seat.state === "absent") return "";
  return ["stuck", "ignored", "worn"]
    .map((word) => [KINDS.filter((kind) => troubleWord(seat, kind) === word), word])
    .filter(([kinds]) => kinds.length > 0)
    .map(([kinds, word]) => `${kinds.join(", ")} ${word}`)
    .join("; ");
}

/** What is wrong with the table, or null. */
export function faultWords(state) {
  const parts = [];
  if (state.not_saving) parts.push("The table cannot save: the match goes on, and its result is kept in memory until the card takes it again; a power cut would lose it. Tell the operator.");
  parts.push(...(state.journal ?? []));
  const where = (buttons) => state.seats
    .filter((seat) => seat.state !== "absent" && buttons(seat).length > 0)
    .map((seat) => `seat ${seat.seat} ${joined(buttons(seat))}`)
    .join("; ");
  const stuck = where((seat) => seat.stuck);
  const ignored = where((seat) => withFault(seat, "flood"));
  const worn = where((seat) => withFault(seat, "chatter"));
  if (stuck) parts.push(`Stuck: ${stuck}. Play on with the other buttons.`);
  if (ignored) parts.push(`Ignored, as no finger presses like that: ${ignored}. Play on with the other buttons.`);
  if (worn) parts.push(`Worn: ${worn}. It counts; have the switch changed.`);
  return parts.length > 0 ? parts.join(" ") : null;
}

/** What a page says whose table is silent. */
export function staleWords(age_s) {
  if (age_s === null) return { sentence: "The table does not answer.", hint: "The page keeps trying; is the table switched on?" };
  const age = age_s < 90 ? seconds(Math.floor(age_s)) : age_s < 5400 ? `${Math.round(age_s / 60)} minutes` : `${Math.round(age_s / 3600)} hours`;
  return { sentence: "The table does not answer.", hint: `What you see is ${age} old. The page keeps trying.` };
}

/** What is read aloud on the way from one state to the next; null: nothing that matters has happened. */
export function announcement(before, state, about, now, own) {
  if (before === null) return sentence(state, about, now, own).sentence;
  if (state.phase === "reveal" && (before.phase !== "reveal" || before.round !== state.round)) {
    const throws = state.seats.filter((seat) => seat.throw !== null).map((seat) => `${called(seat)} ${seat.throw}`);
    return capital(`${throws.join(", ")}. ${roundWords(state)}`);
  }
  if (state.phase === before.phase) {
    if (state.phase === "throw" && before.round !== state.round) return `Round ${state.round}. Throw.`;
    if (state.phase === "lobby") {
      const came = state.seats.filter((seat, index) => sits(seat) && !sits(before.seats[index]));
      if (came.length > 0) return `${capital(listed(came))} sit${came.length === 1 ? "s" : ""} down.`;
    }
    return null;
  }
  switch (state.phase) {
    case "throw":
      return `Round ${state.round}. Throw.`;
    case "countdown": {
      const left = secondsUntil(state.until, now);
      return before.phase === "throw" && left !== null ? `${capital(seconds(left))}.` : null;
    }
    case "settle":
      return null;
    default:
      return sentence(state, about, now, own).sentence;
  }
}

/** The page's title: what a tab among others shows. */
export function title(state, link) {
  if (state === null) return "Ahyoheek";
  const name = state.table || "Ahyoheek";
  if (link === "stale") return `(silent) ${name}`;
  const word = {
    attract: "Free",
    lobby: "Sit down",
    resume: "Press to go on",
    throw: "Throw",
    countdown: "Throw!",
    settle: "Thrown",
    reveal: "Reveal",
    match_over: state.winner === null ? "Void" : `Seat ${state.winner} wins`,
  }[state.phase];
  return word ? `${word} · ${name}` : name;
}
