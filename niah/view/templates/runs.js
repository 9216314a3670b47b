"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const form = byId("choose");
  const TONES = { finished: "good", running: "live", failed: "bad", unreadable: "bad" };
  const count = (value) => value.toLocaleString("en-US");

  // which runs are chosen stands in the address, so that a reload keeps it
  function choose() {
    const chosen = [...form.elements].filter((box) => box.type === "checkbox" && box.checked);
    byId("compare").disabled = chosen.length !== 2;
    byId("hint").textContent = chosen.length === 2 ? "The later one is compared with the earlier one." : "Choose two.";
    const hash = new URLSearchParams(chosen.map((box) => ["run", box.value])).toString();
    history.replaceState(null, "", hash ? "#" + hash : location.pathname);
  }

  function update(entry) {
    const line = [...document.querySelectorAll("tr[data-name]")].find((item) => item.dataset.name === entry.name);
    if (!line) return false;
    const field = (name) => line.querySelector("[data-field=" + name + "]");
    field("status").textContent = entry.silent ? "running, but silent" : entry.status;
    field("status").className = "badge " + (TONES[entry.status] || "plain");
    field("count").textContent = count(entry.done) + (entry.cells ? " / " + count(entry.cells) : "");
    field("progress").max = entry.cells || 1;
    field("progress").value = entry.done;
    field("progress").hidden = entry.status !== "running";
    line.querySelector("a").pathname = "/runs/" + encodeURIComponent(entry.name) + (entry.status === "running" ? "/live" : "");
    return true;
  }

  const source = new EventSource("/events");
  source.addEventListener("state", (event) => {
    const entries = JSON.parse(event.data);
    const known = document.querySelectorAll("tr[data-name]").length;
    const all = entries.map(update);
    if (all.includes(false) || entries.length !== known) location.reload();
  });
  source.addEventListener("open", () => { byId("lost").hidden = true; });
  source.addEventListener("error", () => { byId("lost").hidden = false; });
  window.addEventListener("pagehide", () => source.close());
  if (form) {
    const wanted = new URLSearchParams(location.hash.slice(1)).getAll("run");
    for (const box of form.elements) if (box.type === "checkbox") box.checked = wanted.includes(box.value);
    form.addEventListener("change", choose);
    choose();
  }
})();
