// Keeps the overview and the pages of objects current: server-sent events, polling where those do
// not get through, nothing while the tab is hidden or the person has paused it.
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

  // A form that is open, has the focus or differs from how it came is somebody's work.
  const main = document.getElementById("main");
  const chosen = select => [...select.options].findIndex(o => o.defaultSelected);
  const changed = f => f.matches("select") ? f.selectedIndex !== Math.max(0, chosen(f))
    : f.matches("input:not([type=hidden]), textarea") && (f.value !== f.defaultValue || f.checked !== f.defaultChecked);
  const atWork = form => form.closest("dialog[open]") || form.contains(document.activeElement) || [...form.elements].some(changed);
  const worked = node => node.matches?.("form") && atWork(node);

  // A morph keeps focus, selection and scrolling; what the person opened stays open, what they type stays.
  const options = { morphStyle: "outerHTML", ignoreActiveValue: true, callbacks: {
    beforeNodeMorphed: node => !(worked(node) || node.matches?.("[data-live], dialog[open]")),
    beforeNodeRemoved: node => !(worked(node) || node.matches?.("dialog[open]") || [...node.querySelectorAll?.("form") ?? []].some(atWork)),
    beforeAttributeUpdated: (name, node) => !(name === "open" && node.matches("details")),
  } };
  const differ = (a, b) => a.dataset.state !== b.dataset.state || a.dataset.version !== b.dataset.version;
  function put(html) {
    const t = document.createElement("template");
    t.innerHTML = html;
    let stale = false;
    for (const fresh of [...t.content.children]) {
      const old = fresh.id && document.getElementById(fresh.id);
      if (!old) continue;
      stale ||= differ(old, fresh);
      Idiomorph.morph(old, fresh, options);
    }
    document.dispatchEvent(new Event("fresh"));
    if (stale) renew().catch(failed);
  }

  // The page of an object is read again as it was opened, one request at a time.
  let reading, again;
  async function renew() {
    if (reading) { again = true; return; }
    reading = true;
    try {
      do {
        again = false;
        const answer = await fetch(location.pathname + location.search, { headers: { "HX-Request": "true" } });
        if (answer.status === 401) { location.href = "/login"; return; }
        if (!answer.ok) throw new Error(answer.status);
        Idiomorph.morph(main, new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main"), options);
        htmx.process(main);
        setClock();
        document.dispatchEvent(new Event("fresh"));
      } while (again);
    } finally { reading = false; }
  }

  // Relative times go on by the server's clock, in the words of the page.
  const words = main.dataset.words?.split("|");
  let shown, written, ahead;
  function away(us, now) {
    const s = Math.trunc(Math.abs(us - now) / 1e6), [ago, later, ...units] = words;
    const numbers = s < 60 ? [s] : s < 3600 ? [s / 60, s % 60] : s < 86400 ? [s / 3600, s / 60 % 60] : [s / 86400, s / 3600 % 24];
    const unit = units[[60, 3600, 86400, Infinity].findIndex(most => s < most)];
    return (us < now ? ago : later).replace("%s", unit.replace(/%(02)?d/g, (_, two) => String(Math.trunc(numbers.shift())).padStart(two ? 2 : 1, "0")));
  }
  function tick() {
    const now = Date.now() * 1000 + ahead;
    for (const el of document.querySelectorAll("[data-away]")) {
      const us = Number(el.dataset.away), was = shown.get(el) ?? away(us, written), is = away(us, now);
      if (was === is) continue;
      const texts = document.createTreeWalker(el, NodeFilter.SHOW_TEXT);
      while (texts.nextNode()) texts.currentNode.nodeValue = texts.currentNode.nodeValue.replace(was, is);
      shown.set(el, is);
    }
  }
  function setClock() {
    written = Number(main.dataset.now);
    ahead = written - Date.now() * 1000;
    shown = new WeakMap();
  }
  if (words) { setClock(); setInterval(tick, 1000); }

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
    source.addEventListener("alive", e => { heard(); if (words) put(e.data); });
    source.addEventListener("replaced", () => { stop(); poll(); }); // this person has many pages open
    source.addEventListener("panels", e => { seen = e.lastEventId; heard(); put(e.data); });
    watch = setTimeout(failed, SILENT);
  }

  async function poll() {
    const query = new URL(head.dataset.live, location.href).search;
    try {
      if (words) await renew();
      const panels = words ? [] : head.dataset.poll ? [head.dataset.poll] : ["attention", "risk", "outcomes", "merchants-health", "queues"].map(p => "/_/" + p);
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
