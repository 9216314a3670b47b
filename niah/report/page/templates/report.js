"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const at = Object.fromEntries(data.columns.map((name, index) => [name, index]));
  const shared = new Set(data.shared);
  const get = (cell, name) => (shared.has(name) ? data.strings[cell[at[name]]] : cell[at[name]]);
  const PAGE = 100;
  const state = { run: "", kv: "", outcome: "", length: "", depth: "", find: "", sort: "", cell: "" };
  let shown = [];
  let limit = PAGE;

  // everything below goes through textContent: a model's answer is never read as markup
  const make = (tag, text, attributes) => {
    const element = document.createElement(tag);
    if (text !== undefined && text !== null) element.textContent = text;
    for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
    return element;
  };
  const verdict = (cell) => {
    const outcome = get(cell, "outcome");
    return outcome !== "answered" ? outcome : get(cell, "correct") ? "right" : "wrong";
  };
  const TONES = { right: "good", wrong: "bad" };
  const count = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en-US"));
  const seconds = (value) => (value === null ? "–" : value.toFixed(value < 10 ? 3 : 1) + " s");
  const percent = (value) => (value === null ? "–" : +(value * 100).toFixed(2) + " %");
  const fraction = (value) => (value === null ? "–" : value.toFixed(3).replace("-", "−"));
  const SHOW = { percent, fraction, seconds, number: count };
  const distinct = (read) => [...new Set(data.cells.map(read))];

  const COLUMNS = [
    ["cell", (c) => get(c, "cell_id"), "text"],
    ["KV setting", (c) => get(c, "kv"), "text"],
    ["length", (c) => get(c, "length"), "number"],
    ["depth", (c) => get(c, "depth"), "percent"],
    ["trial", (c) => get(c, "trial"), "number"],
    ["outcome", verdict, "text"],
    ["log-prob.", (c) => get(c, "logprob"), "fraction"],
    ["KV bytes", (c) => get(c, "logical_bytes"), "number"],
    ["seconds (share)", (c) => get(c, "total_s"), "seconds"],
    ["expected", (c) => get(c, "expected").join(" | "), "text"],
    ["answer", (c) => get(c, "answer") || get(c, "error"), "text"],
  ];

  const matches = (cell) =>
    (state.run === "" || String(get(cell, "run")) === state.run) &&
    (state.kv === "" || get(cell, "kv") === state.kv) &&
    (state.outcome === "" || verdict(cell) === state.outcome) &&
    (state.length === "" || String(get(cell, "length")) === state.length) &&
    (state.depth === "" || String(get(cell, "depth")) === state.depth) &&
    (state.find === "" ||
      [get(cell, "cell_id"), get(cell, "answer"), get(cell, "why"), get(cell, "error"), get(cell, "expected").join(" ")]
        .some((text) => text.toLowerCase().includes(state.find.toLowerCase())));

  const compare = (read, down) => (a, b) => {
    const x = read(a), y = read(b);
    if (x === y) return 0;
    if (x === null) return 1;
    if (y === null) return -1;
    return (x < y ? -1 : 1) * (down ? -1 : 1);
  };

  function drawHead() {
    const line = make("tr");
    COLUMNS.forEach(([title, , kind], index) => {
      const [sorted, direction] = state.sort.split(" ");
      const active = state.sort !== "" && Number(sorted) === index;
      const cell = make("th", null, { scope: "col", class: kind === "text" ? "text" : "" });
      cell.setAttribute("aria-sort", active ? (direction === "down" ? "descending" : "ascending") : "none");
      const button = make("button", title + (active ? (direction === "down" ? " ▾" : " ▴") : ""), { type: "button" });
      button.addEventListener("click", () => {
        state.sort = index + (active && direction === "up" ? " down" : " up");
        draw();
        byId("table").querySelectorAll("thead button")[index].focus();
      });
      cell.append(button);
      line.append(cell);
    });
    byId("table").tHead.replaceChildren(line);
  }

  function drawBody() {
    const lines = shown.slice(0, limit).map((cell) => {
      const line = make("tr");
      COLUMNS.forEach(([, read, kind], index) => {
        const value = read(cell);
        const text = SHOW[kind] ? SHOW[kind](value) : value;
        const field = make("td", null, { class: kind === "text" ? "text" : "" });
        if (index === 0) {
          const button = make("button", text.slice(0, 12), { type: "button", "aria-label": "show cell " + text });
          button.addEventListener("click", () => open(cell));
          field.append(button);
        } else if (COLUMNS[index][0] === "outcome") {
          field.append(make("span", text, { class: "badge " + (TONES[text] || "plain") }));
        } else {
          field.textContent = kind === "text" ? text.replace(/\s+/g, " ").slice(0, 120) : text;
        }
        line.append(field);
      });
      return line;
    });
    byId("table").tBodies[0].replaceChildren(...lines);
    byId("more").hidden = shown.length <= limit;
    byId("count").textContent = count(shown.length) + " of " + count(data.cells.length) + " cells";
  }

  function draw() {
    shown = data.cells.filter(matches);
    if (state.sort !== "") {
      const [index, direction] = state.sort.split(" ");
      if (COLUMNS[index]) shown.sort(compare(COLUMNS[index][1], direction === "down"));
    }
    drawHead();
    drawBody();
    remember();
  }

  function remember() {
    const parts = new URLSearchParams(Object.entries(state).filter(([, value]) => value !== ""));
    const any = [...parts].length > 0;
    if (!any && !location.hash.includes("=")) return; // a link to a section stays
    const link = any ? "#" + parts.toString() : location.pathname + location.search;
    try { history.replaceState(null, "", link); } catch (error) { /* some viewers forbid it: links are a convenience */ }
  }

  function recall() {
    const hash = location.hash.slice(1);
    if (!hash.includes("=")) return;
    for (const name of Object.keys(state)) state[name] = "";
    for (const [name, value] of new URLSearchParams(hash)) if (name in state) state[name] = value;
  }

  function block(title, text) {
    return text ? [make("h3", title), make("pre", text)] : [];
  }

  function facts(pairs) {
    const list = make("dl");
    for (const [name, value] of pairs) list.append(make("dt", name), make("dd", value));
    return list;
  }

  function needle(cell) {
    const [, before, hidden, after, , matches] = data.pairs[get(cell, "pair")];
    if (hidden === undefined) return [];
    const text = make("pre", null, { class: "needle" });
    text.append("…" + before, make("mark", hidden), after + "…");
    const warning = matches ? [] : [make("p", "The prompt built now is not the one that was sent: text, tokenizer or niah have changed.", { class: "band" })];
    return [make("h3", "Needle in its surroundings"), text, ...warning];
  }

  // the model's words behind the start of the reply that it was given
  function answer(cell) {
    const lead = get(cell, "answer_prefix") ? data.pairs[get(cell, "pair")][4] : "";
    if (!get(cell, "answer") && get(cell, "outcome") !== "answered") return [];
    const text = make("pre");
    if (lead) text.append(make("span", lead, { class: "muted" }));
    text.append(make("strong", get(cell, "answer")));
    return [make("h3", lead ? "Answer (its start was given)" : "Answer"), text];
  }

  let byPair = null;
  function siblings(cell) {
    if (byPair === null) {
      byPair = new Map();
      for (const other of data.cells) {
        const pair = get(other, "pair");
        if (byPair.has(pair)) byPair.get(pair).push(other); else byPair.set(pair, [other]);
      }
    }
    const others = byPair.get(get(cell, "pair")).filter((other) => other !== cell);
    if (others.length === 0) return [];
    const list = make("ul", null, { class: "siblings" });
    for (const other of others) {
      const where = data.runs.length > 1 ? " in " + data.runs[get(other, "run")] : "";
      const button = make("button", get(other, "kv") + where, { type: "button" });
      button.addEventListener("click", () => open(other));
      const item = make("li");
      item.append(button, " ", make("span", verdict(other), { class: "badge " + (TONES[verdict(other)] || "plain") }), " ", make("span", (get(other, "answer") || get(other, "error")).slice(0, 60), { class: "muted" }));
      list.append(item);
    }
    return [make("h3", "The same needle under other settings"), list];
  }

  function open(cell) {
    const run = data.runs[get(cell, "run")];
    const money = get(cell, "cost_usd");
    byId("drawer-title").textContent = get(cell, "kv") + " · " + count(get(cell, "length")) + " tokens · depth " + percent(get(cell, "depth"));
    const badge = make("p");
    badge.append(make("span", verdict(cell), { class: "badge " + (TONES[verdict(cell)] || "plain") }), " " + get(cell, "why"));
    byId("drawer-body").replaceChildren(
      badge,
      ...block("Error", get(cell, "error")),
      ...needle(cell),
      ...block("Question", data.pairs[get(cell, "pair")][0]),
      ...block("Expected", get(cell, "expected").join("\n")),
      ...answer(cell),
      ...block("Reasoning", get(cell, "reasoning")),
      ...siblings(cell),
      make("h3", "Cell"),
      facts([
        ["cell", get(cell, "cell_id")], ["task, haystack", get(cell, "task") + ", " + get(cell, "haystack")],
        ["trial, attempt", get(cell, "trial") + ", " + get(cell, "attempt")],
        ["depth asked, built", percent(get(cell, "depth")) + ", " + percent(get(cell, "depth_real"))],
        ["scored by", get(cell, "scorer") || "–"],
        ["log-probability", fraction(get(cell, "logprob"))],
        ["stop", get(cell, "stop") || "–"],
      ]),
      make("h3", "Tokens"),
      facts([
        ["prompt, by engine", count(get(cell, "prompt_tokens")) + ", " + count(get(cell, "engine_prompt_tokens"))],
        ["reused", count(get(cell, "cached_tokens"))],
        ["answered, budget", count(get(cell, "output_tokens")) + ", " + count(get(cell, "answer_budget"))],
      ]),
      make("h3", "KV memory (bytes)"),
      facts([
        ["stored tokens", count(get(cell, "tokens"))], ["logical", count(get(cell, "logical_bytes"))],
        ["allocated", count(get(cell, "allocated_bytes"))], ["pool", count(get(cell, "pool_bytes"))],
        ["formula", count(get(cell, "formula_bytes"))], ["16-bit reference", count(get(cell, "reference_bytes"))],
        ["source", get(cell, "source").replace(/_/g, " ")],
      ]),
      make("h3", "Time and cost"),
      facts([["prefill, this cell's share of its context", seconds(get(cell, "prefill_s"))], ["first token, from the start of the whole context", seconds(get(cell, "first_token_s"))], ["total, this cell's share of its context", seconds(get(cell, "total_s"))], ["US dollars", money === null ? "not known" : money.toPrecision(3)]]),
      ...block("See the whole prompt", "niah cell " + run + " " + get(cell, "cell_id") + " --prompt"),
    );
    state.cell = get(cell, "run") + ":" + get(cell, "cell_id");
    const place = shown.indexOf(cell);
    const step = (button, to) => {
      byId(button).disabled = place < 0 || !shown[to];
      byId(button).onclick = () => open(shown[to]);
    };
    step("previous", place - 1);
    step("next", place + 1);
    if (!byId("drawer").open) byId("drawer").showModal();
    byId("drawer").scrollTop = 0;
    remember();
  }

  function addFilter(name, title, options) {
    const label = make("label", title);
    const select = make("select", null, { name });
    select.append(make("option", "all", { value: "" }), ...options.map(([value, text]) => make("option", text, { value })));
    select.addEventListener("change", () => { state[name] = select.value; limit = PAGE; draw(); });
    label.append(select);
    byId("filters").append(label);
  }

  function showFilters() {
    for (const field of byId("filters").elements) if (field.name) field.value = state[field.name];
  }

  function addFilters() {
    const number = (a, b) => a - b;
    if (data.runs.length > 1) addFilter("run", "run", data.runs.map((name, index) => [String(index), name]));
    addFilter("kv", "KV setting", distinct((c) => get(c, "kv")).map((kv) => [kv, kv]));
    addFilter("outcome", "outcome", distinct(verdict).sort().map((v) => [v, v]));
    addFilter("length", "length", distinct((c) => get(c, "length")).sort(number).map((v) => [String(v), count(v)]));
    addFilter("depth", "depth", distinct((c) => get(c, "depth")).sort(number).map((v) => [String(v), percent(v)]));
    const label = make("label", "text or cell");
    const input = make("input", null, { name: "find", type: "search" });
    input.addEventListener("input", () => { state.find = input.value; limit = PAGE; draw(); });
    label.append(input);
    const clear = make("button", "Clear", { type: "button" });
    clear.addEventListener("click", () => { for (const name of Object.keys(state)) state[name] = ""; limit = PAGE; showFilters(); draw(); });
    byId("filters").append(label, clear);
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
  }

  function openRecalled() {
    const [run, ...rest] = state.cell.split(":");
    const cell = data.cells.find((c) => String(get(c, "run")) === run && get(c, "cell_id") === rest.join(":"));
    if (cell) open(cell);
  }

  // a square: the table shows its cells, and the drawer the first of them, a wrong one where there is one
  function openSquare(svg, square) {
    const [length, depth] = square.dataset.at.split(",");
    const run = svg.dataset.run;
    Object.assign(state, { run: data.runs.length > 1 ? run : "", length, depth: String(Number(depth)), outcome: "", find: "", cell: "" });
    state.kv = run === "" ? "" : svg.dataset.kv;
    limit = PAGE;
    showFilters();
    draw();
    const first = shown.find((cell) => verdict(cell) !== "right") || shown[0];
    if (first) open(first);
  }

  function addMap(svg) {
    const squares = [...svg.querySelectorAll(".sq")];
    const columns = [...new Set(squares.map((s) => Number(s.dataset.at.split(",")[0])))].sort((a, b) => a - b);
    const lines = [...new Set(squares.map((s) => Number(s.dataset.at.split(",")[1])))].sort((a, b) => a - b);
    const grid = new Map(squares.map((s) => {
      const [length, depth] = s.dataset.at.split(",").map(Number);
      return [columns.indexOf(length) + "," + lines.indexOf(depth), s];
    }));
    const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    squares.forEach((square, index) => {
      square.setAttribute("tabindex", index === 0 ? "0" : "-1");
      square.setAttribute("role", "button");
      square.setAttribute("aria-label", square.querySelector("title").textContent);
    });
    svg.addEventListener("click", (event) => {
      const square = event.target.closest(".sq");
      if (square) openSquare(svg, square);
    });
    svg.addEventListener("keydown", (event) => {
      const square = event.target.closest(".sq");
      if (!square) return;
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        openSquare(svg, square);
        return;
      }
      const move = MOVES[event.key];
      if (!move) return;
      event.preventDefault();
      const [length, depth] = square.dataset.at.split(",").map(Number);
      let column = columns.indexOf(length) + move[0], line = lines.indexOf(depth) + move[1];
      // squares that were not run are stepped over
      while (column >= 0 && column < columns.length && line >= 0 && line < lines.length && !grid.has(column + "," + line)) {
        column += move[0];
        line += move[1];
      }
      const next = grid.get(column + "," + line);
      if (!next) return;
      square.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    });
  }

  document.querySelectorAll("svg[data-run]").forEach(addMap);
  byId("more").addEventListener("click", () => { limit += 5 * PAGE; drawBody(); });
  byId("close").addEventListener("click", () => byId("drawer").close());
  byId("drawer").addEventListener("close", () => { state.cell = ""; remember(); });
  byId("drawer").addEventListener("click", (event) => { if (event.target === byId("drawer")) byId("drawer").close(); });
  byId("drawer").addEventListener("keydown", (event) => {
    if (event.target.matches("input, select")) return;
    if (event.key === "ArrowLeft" && !byId("previous").disabled) byId("previous").click();
    if (event.key === "ArrowRight" && !byId("next").disabled) byId("next").click();
  });
  window.addEventListener("hashchange", () => { recall(); showFilters(); draw(); openRecalled(); });
  addFilters();
  recall();
  showFilters();
  draw();
  openRecalled();
})();
