// Keeps the overview current: server-sent events, polling where those do not get
// through, nothing while the tab is hidden or the person has paused it.
(() => {
  const head = document.querySelector("[data-live]");
  if (!head || !window.EventSource || !window.Idiomorph) return;
  const FAILS = 3, POLL = 10_000, SILENT = 40_000, AGAIN = 6; // polls before events are tried again
  const pauseButton = document.querySelector("[data-pause]");
  if (pauseButton) pauseButton.hidden = false;
  let source, timer, watch, fails = 0, polls = 0, seen = "", paused = false;

  function show(state) {
    if (head.dataset.state === state) return;
    head.dataset.state = state;
    head.querySelector("[data-word]").textContent = head.dataset["word" + state[0].toUpperCase() + state.slice(1)];
  }

  // A morph keeps focus, selection and scrolling; what the person opened stays open.
  const options = { morphStyle: "outerHTML", ignoreActiveValue: true, callbacks: {
    beforeAttributeUpdated: (name, node) => !(name === "open" && node.matches("details")),
  } };
  function put(html) {
    const t = document.createElement("template");
    t.innerHTML = html;
    for (const fresh of [...t.content.children]) {
      const old = fresh.id && document.getElementById(fresh.id);
      // In another state the page offers other actions; what is being typed is kept.
      if (old && old.dataset.state !== fresh.dataset.state && !document.activeElement?.matches("input, textarea")) { location.reload(); return; }
      if (old) Idiomorph.morph(old, fresh, options);
    }
    document.dispatchEvent(new Event("fresh"));
  }

  function stop() {
    source?.close();
    source = null;
    clearTimeout(timer);
    clearTimeout(watch);
  }

  function heard() {
    fails = polls = 0;
    show("live");
    clearTimeout(watch);
    watch = setTimeout(failed, SILENT); // a broken connection gives no error
  }

  function failed() {
    stop();
    fails++;
    show("delayed");
    timer = fails < FAILS ? setTimeout(listen, 1000 * fails) : setTimeout(poll, 0);
  }

  function listen() {
    stop();
    const url = head.dataset.live + (seen ? "&seen=" + encodeURIComponent(seen) : "");
    source = new EventSource(url);
    source.onerror = failed;
    source.onopen = heard;
    source.addEventListener("alive", heard);
    source.addEventListener("replaced", () => { stop(); poll(); }); // this person has many pages open
    source.addEventListener("panels", e => { seen = e.lastEventId; heard(); put(e.data); });
    watch = setTimeout(failed, SILENT);
  }

  async function poll() {
    const query = new URL(head.dataset.live, location.href).search;
    try {
      const panels = head.dataset.poll ? [head.dataset.poll] : ["risk", "todo", "outcomes", "merchants-health", "queues"].map(p => "/_/" + p);
      for (const panel of panels) {
        const answer = await fetch(panel + query, { headers: { "HX-Request": "true" } });
        if (answer.status === 401) { location.href = "/login"; return; }
        if (!answer.ok) throw new Error(answer.status);
        put(await answer.text());
      }
      show("delayed");
    } catch { show("offline"); }
    if (paused || document.hidden) return;
    timer = setTimeout(++polls % AGAIN === 0 ? listen : poll, POLL);
  }

  function resume() {
    if (paused || document.hidden) { stop(); if (paused) show("paused"); return; }
    fails = polls = 0;
    listen(); // it is live once the connection is open
  }

  function pause() {
    paused = !paused;
    pauseButton?.setAttribute("aria-pressed", paused);
    const word = pauseButton?.querySelector("span");
    if (word) word.textContent = paused ? pauseButton.dataset.resumeWord : pauseButton.dataset.pauseWord;
    resume();
  }

  pauseButton?.addEventListener("click", pause);
  document.addEventListener("keydown", e => {
    if (e.key !== "p" || e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, textarea, select") || document.querySelector("dialog[open]")) return;
    pause();
  });
  document.addEventListener("visibilitychange", resume);
  addEventListener("pagehide", stop);
  addEventListener("pageshow", e => { if (e.persisted) resume(); });
  resume();
})();
