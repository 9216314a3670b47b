"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const TONES = { right: "good", wrong: "bad", finished: "good", running: "live", failed: "bad" };
  // everything goes through textContent: a model's answer is never read as markup
  const make = (tag, text, attributes) => {
    const element = document.createElement(tag);
    if (text !== undefined && text !== null) element.textContent = text;
    for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
    return element;
  };
  const count = (value) => value.toLocaleString("en-US");
  const percent = (value) => +(value * 100).toFixed(2) + " %";
  const short = (length) => (length % 1024 === 0 ? length / 1024 + "k" : String(length));
  const span = (s) => (s > 5400 ? (s / 3600).toFixed(1) + " h" : s > 90 ? Math.round(s / 60) + " min" : Math.round(s) + " s");

  function grid(setting) {
    const places = Object.keys(setting.squares).map((key) => key.split(",").map(Number));
    const ordered = (known, index) => [...new Set([...known, ...places.map((p) => p[index])])].sort((a, b) => a - b);
    const lengths = ordered(data.lengths, 0), depths = ordered(data.depths, 1);
    const table = make("table", null, { class: "live-grid" });
    const head = make("tr");
    head.append(make("th", "depth", { scope: "col" }), ...lengths.map((length) => make("th", short(length), { scope: "col" })));
    table.append(head);
    for (const depth of depths) {
      const line = make("tr");
      line.append(make("th", percent(depth), { scope: "row" }));
      for (const length of lengths) {
        const square = setting.squares[length + "," + depth];
        const cell = make("td");
        if (square) {
          const [right, answered, lost] = square;
          cell.textContent = answered ? Math.round((100 * right) / answered) : "";
          if (lost) cell.className = answered ? "lost part" : "lost";
          cell.title = right + " of " + answered + " right" + (lost ? ", " + lost + " without an answer" : "");
          if (answered) {
            [cell.style.backgroundColor, cell.style.color] = data.scale[Math.round((100 * right) / answered)];
          }
        }
        line.append(cell);
      }
      table.append(line);
    }
    const figure = make("figure");
    const share = setting.answered ? Math.round((1000 * setting.right) / setting.answered) / 10 + " % of " + count(setting.answered) : "nothing answered yet";
    const title = make("figcaption", setting.kv + " · " + share);
    if (setting.broken) title.append(" ", make("strong", "BROKEN: canary failed", { class: "badge bad" }));
    const scroll = make("div", null, { class: "scroll" });
    scroll.append(table);
    figure.append(title, scroll);
    return figure;
  }

  function lastLine(row) {
    const line = make("tr");
    const badge = make("td", null, { class: "text" });
    badge.append(make("span", row.verdict, { class: "badge " + (TONES[row.verdict] || "plain") }));
    line.append(make("td", row.kv, { class: "text" }), make("td", count(row.length)), make("td", percent(row.depth)), badge, make("td", row.expected, { class: "text" }), make("td", row.answer, { class: "text" }));
    return line;
  }

  function show(state) {
    byId("status").textContent = state.silent_s ? "running, but silent for " + span(state.silent_s) : state.status;
    byId("status").className = "badge " + (TONES[state.status] || "plain");
    byId("count").textContent = count(state.done) + (state.cells ? " of " + count(state.cells) : "") + " cells";
    byId("progress").max = state.cells || 1;
    byId("progress").value = state.done;
    const pace = [];
    if (state.per_minute !== null) pace.push(state.per_minute.toPrecision(3) + " cells a minute");
    if (state.status === "running" && state.left_s) pace.push("about " + span(state.left_s) + " left");
    byId("pace").textContent = pace.join(", ");
    byId("settings").replaceChildren(...state.settings.map(grid));
    byId("last").replaceChildren(...state.last.map(lastLine));
    document.title = "niah · " + state.done + (state.cells ? "/" + state.cells : "");
  }

  const source = new EventSource(data.events);
  source.addEventListener("state", (event) => show(JSON.parse(event.data)));
  source.addEventListener("end", (event) => {
    show(JSON.parse(event.data));
    source.close();
    byId("report").textContent = "The run has ended: open its report";
    byId("report").className = "button";
  });
  source.addEventListener("refused", (event) => {
    source.close();
    byId("lost").textContent = JSON.parse(event.data);
    byId("lost").hidden = false;
  });
  source.addEventListener("open", () => { byId("lost").hidden = true; });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) return;
    byId("lost").textContent = "The connection to niah view is lost: this page does not move until it is back.";
    byId("lost").hidden = false;
  });
  window.addEventListener("pagehide", () => source.close());
})();
