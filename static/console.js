// All of the console's own script: no inline handlers and no eval (strict CSP).
// Every page reads and filters without it.
const $ = (s, r = document) => r.querySelector(s), $$ = (s, r = document) => [...r.querySelectorAll(s)];

// Copying falls back to a selection where the page is plain http.
document.addEventListener("click", async e => {
  const b = e.target.closest("[data-copy]");
  if (!b) return;
  e.preventDefault();
  try { await navigator.clipboard.writeText(b.dataset.copy); }
  catch {
    const i = document.createElement("textarea");
    i.value = b.dataset.copy;
    document.body.append(i);
    i.select();
    document.execCommand("copy");
    i.remove();
    b.focus();
  }
  const use = $("use", b), before = use.getAttribute("href");
  use.setAttribute("href", before.replace(/#.*/, "#check"));
  setTimeout(() => use.setAttribute("href", before), 1200);
});

// Dialogs open and close by name.
document.addEventListener("click", e => {
  const open = e.target.closest("[data-open]"), close = e.target.closest("[data-close]");
  if (open) $(open.dataset.open).showModal();
  if (close) close.closest("dialog").close();
  if (e.target.closest("[data-print]")) print();
});

// A window of time that is chosen takes the place of a beginning.
document.addEventListener("change", e => {
  if (e.target.matches(".filters [name=window]")) e.target.form.from.value = "";
});

// The query bar proposes how its text can go on; the arrows choose, Enter or Tab takes.
$$("input[data-propose]").forEach(input => {
  const box = $("#proposals"), options = () => $$("[role=option]", box);
  const marked = () => options().find(o => o.getAttribute("aria-selected") === "true");
  let timer, asked = 0;
  const mark = to => {
    for (const o of options()) o.setAttribute("aria-selected", o === to);
    if (!to) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", to.id);
    to.scrollIntoView({ block: "nearest" });
  };
  const close = () => {
    mark(null);
    box.hidden = true;
    input.setAttribute("aria-expanded", "false");
  };
  const look = async () => {
    const mine = ++asked;
    const got = await fetch(`${input.dataset.propose}?propose=1&q=${encodeURIComponent(input.value)}`, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (mine !== asked || !got?.ok || document.activeElement !== input) return;
    const text = await got.text(), chosen = marked()?.dataset.text;
    box.innerHTML = text;
    if (!box.children.length) return close();
    box.hidden = false;
    input.setAttribute("aria-expanded", "true");
    mark(options().find(o => o.dataset.text === chosen)); // the arrows may be faster than the answer
  };
  const take = option => {
    input.value = option.dataset.text;
    input.focus();
    close();
    look();
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, 150);
  });
  input.addEventListener("focus", look);
  input.addEventListener("blur", () => setTimeout(close, 150));
  box.addEventListener("mousedown", e => {
    const option = e.target.closest("[role=option]");
    e.preventDefault();
    if (option) take(option);
  });
  input.addEventListener("keydown", e => {
    if (box.hidden) return;
    const all = options(), at = all.indexOf(marked());
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      mark(all[(at + (e.key === "ArrowDown" ? 1 : at < 0 ? 0 : -1) + all.length) % all.length]);
    } else if ((e.key === "Enter" || e.key === "Tab") && at >= 0) {
      e.preventDefault();
      take(all[at]);
    } else if (e.key === "Escape") {
      e.preventDefault();
      close();
    }
  });
});

// Dragging over the chart of a list chooses its time.
$$("svg[data-from]").forEach(chart => {
  const from = Number(chart.dataset.from), to = Number(chart.dataset.to);
  let start = null;
  $("[data-brush]", chart.parentNode).hidden = false;
  const at = e => {
    const r = chart.getBoundingClientRect();
    return Math.min(1, Math.max(0, (e.clientX - r.left) / r.width));
  };
  const show = (a, b) => {
    const brush = $(".brush", chart);
    brush.setAttribute("x", `${Math.min(a, b) * 100}%`);
    brush.setAttribute("width", `${Math.abs(b - a) * 100}%`);
  };
  chart.addEventListener("pointerdown", e => {
    if (e.button !== 0) return;
    start = at(e);
    chart.setPointerCapture(e.pointerId);
  });
  chart.addEventListener("pointermove", e => start !== null && show(start, at(e)));
  chart.addEventListener("pointercancel", () => { start = null; show(0, 0); });
  chart.addEventListener("pointerup", e => {
    if (start === null) return;
    const ends = [start, at(e)].sort((a, b) => a - b);
    start = null;
    if (ends[1] - ends[0] < 0.01) return show(0, 0);
    const url = new URL(location.href), iso = x => new Date(Math.round((from + x * (to - from)) / 60) * 60000).toISOString().replace(":00.000Z", "Z");
    for (const name of ["cursor", "window", "newer"]) url.searchParams.delete(name);
    url.searchParams.set("from", iso(ends[0]));
    url.searchParams.set("to", iso(ends[1]));
    location.assign(url);
  });
});

// Where a note has @ and the beginning of a name, it offers the people of that name.
for (const offers of $$("[data-mentions]")) {
  const note = $(offers.dataset.mentions), buttons = $$("[data-mention]", offers);
  const begun = () => note.value.slice(0, note.selectionStart).match(/(?:^|[^A-Za-z0-9._@-])@([A-Za-z0-9._-]*)$/);
  const offer = () => {
    const at = begun();
    const fit = at ? buttons.map(b => b.dataset.mention).filter(name => name.startsWith(at[1].toLowerCase()) && name !== at[1]).slice(0, 8) : [];
    for (const b of buttons) b.hidden = !fit.includes(b.dataset.mention);
    offers.hidden = !fit.length;
  };
  note.addEventListener("input", offer);
  for (const b of buttons) b.addEventListener("click", () => {
    const at = begun();
    note.focus();
    if (at) note.setRangeText(b.dataset.mention + " ", note.selectionStart - at[1].length, note.selectionStart, "end");
    offer();
  });
}

// The bell counts on pages that do not keep themselves current.
const bell = $("#bell");
if (bell && !$("[data-live]")) {
  let timer;
  const plan = () => { clearTimeout(timer); if (!document.hidden) timer = setTimeout(ring, 30_000); };
  const ring = async () => {
    try {
      const answer = await fetch("/_/bell", { headers: { "HX-Request": "true" } });
      if (answer.status === 401) return; // signed out: the next click leads to the login
      const t = document.createElement("template");
      if (answer.ok) {
        t.innerHTML = await answer.text();
        const fresh = $("#bell", t.content);
        for (const name of ["aria-label", "title"]) bell.setAttribute(name, fresh.getAttribute(name));
        bell.replaceChildren(...fresh.childNodes); // keeps its focus
      }
    } catch {} // fetched again next time
    plan();
  };
  document.addEventListener("visibilitychange", () => document.hidden ? plan() : ring());
  plan();
}

// The counts of a list's views come after the page.
const views = $("[data-counts]");
if (views) (async () => {
  const merchant = new URLSearchParams(location.search).get("merchant");
  try {
    const answer = await fetch(views.dataset.counts + (merchant ? "&merchant=" + encodeURIComponent(merchant) : ""), { headers: { "HX-Request": "true" } });
    if (!answer.ok) return;
    const t = document.createElement("template");
    t.innerHTML = await answer.text();
    for (const n of $$("[data-count]", views)) n.textContent = $(`[data-of="${n.dataset.count}"]`, t.content)?.textContent ?? "";
    views.dataset.counted = "1";
  } catch {} // without counts, as without scripts
})();

// An amount as the server writes it, after its zero in the same currency, such as ¥0.00.
const amount = (zero, minor) => {
  const [, symbol, fraction = ""] = zero.match(/^(.*?)0(?:\.(0+))?$/);
  const digits = String(minor < 0n ? -minor : minor).padStart(fraction.length + 1, "0"), dot = digits.length - fraction.length;
  return (minor < 0n ? "−" : "") + symbol + digits.slice(0, dot).replace(/\B(?=(\d{3})+$)/g, ",") + (fraction && "." + digits.slice(dot));
};
// Rows are picked one by one, a range with shift, or the whole page.
const picked = form => {
  const boxes = $$("input[name=row]", form), n = boxes.filter(b => b.checked).length;
  for (const b of boxes) b.closest("tr").setAttribute("aria-selected", b.checked);
  $("[data-picked]", form).hidden = !n;
  $("[data-n]", form).textContent = n;
  const sums = {};
  for (const b of boxes) {
    const money = b.checked && $("data.money", b.closest("tr"));
    if (!money) continue;
    const [minor, currency] = money.value.split(" ");
    sums[currency] = (sums[currency] ?? 0n) + BigInt(minor);
  }
  for (const at of $$("[data-sum]", form)) {
    const sum = sums[at.dataset.sum], written = $("data", at).firstChild;
    at.hidden = sum === undefined;
    written.data = amount(at.dataset.zero ??= written.data.trim(), sum ?? 0n);
  }
  const all = $("[data-all]", form);
  all.checked = n > 0 && n === boxes.length;
  all.indeterminate = n > 0 && n < boxes.length;
};
let lastPicked;
document.addEventListener("click", e => {
  const form = e.target.closest("form[data-pick]");
  if (!form || !e.target.matches("input[type=checkbox]")) return;
  const boxes = $$("input[name=row]", form);
  if (e.target.matches("[data-all]")) for (const b of boxes) b.checked = e.target.checked;
  else {
    if (e.shiftKey && boxes.includes(lastPicked)) {
      const [from, to] = [boxes.indexOf(lastPicked), boxes.indexOf(e.target)].sort((a, b) => a - b);
      for (const b of boxes.slice(from, to + 1)) b.checked = e.target.checked;
    }
    lastPicked = e.target;
  }
  picked(form);
});
addEventListener("pageshow", () => $$("form[data-pick]").forEach(picked));

// A form that sends many items stays disabled until the amount is typed as shown.
// The server checks the same.
const guarded = form => {
  const typed = $$("[data-typed]", form), button = $("button", form);
  if (typed.length && !button.dataset.off) button.disabled = typed.some(field => field.value.trim() !== field.dataset.typed);
};
const guardAll = () => {
  for (const form of $$("form[data-guard]:not([data-guarded])")) {
    if ($("button", form).disabled) $("button", form).dataset.off = "1";
    form.dataset.guarded = "1"; // a page that is read again has forms without it
    guarded(form);
  }
};
document.addEventListener("input", e => {
  const form = e.target.closest("form[data-guard]");
  if (form) guarded(form);
});
document.addEventListener("fresh", guardAll);
guardAll();

// On a phone rows are cards: each cell is named by the heading of its column, and the first link
// is as large as the card.
const phone = matchMedia("(max-width: 700px)");
const cards = () => {
  if (!phone.matches) return;
  for (const table of $$("main table")) {
    const heads = $$("thead th", table).map(th => th.textContent.trim());
    if (!heads.length) continue;
    table.classList.add("cards");
    table.setAttribute("role", "table");
    for (const row of $$("tbody tr", table)) {
      row.setAttribute("role", "row");
      let column = 0;
      for (const cell of row.cells) {
        cell.setAttribute("role", cell.tagName === "TH" ? "rowheader" : "cell");
        if (cell.colSpan === 1 && heads[column]) cell.dataset.head = heads[column];
        if (/^[–-]?$/.test(cell.textContent.trim()) && !$("svg, input, i", cell)) cell.classList.add("none");
        if ($("input[type=checkbox]", cell)) cell.classList.add("pick");
        column += cell.colSpan;
      }
      const lead = $("a:not(.btn)", row);
      if (lead) { lead.classList.add("lead-in"); lead.closest("td, th")?.classList.add("has-lead"); }
    }
  }
};
cards();
phone.addEventListener("change", cards);
for (const fresh of ["htmx:afterSettle", "fresh"]) document.addEventListener(fresh, cards);
$(".side [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });

// Charts say their values under the pointer, and with the arrow keys while they have the focus.
let tip, spot;
const sayValues = to => {
  if (to === spot && to) return;
  spot?.classList.remove("on");
  spot = to;
  if (!to) { if (tip) tip.hidden = true; return; }
  if (!tip) document.body.append(tip = Object.assign(document.createElement("output"), { className: "tip" }));
  const title = $("title", to);
  if (title) { // else the browser would show it too
    to.dataset.tip = title.textContent;
    if (to.href) to.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  to.classList.add("on");
  tip.hidden = false;
  tip.textContent = to.dataset.tip;
  const box = to.getBoundingClientRect(), most = innerWidth - tip.offsetWidth - 8;
  tip.style.left = Math.max(8, Math.min(most, box.left + box.width / 2 - tip.offsetWidth / 2)) + "px";
  tip.style.top = Math.max(8, box.top - tip.offsetHeight - 6) + "px";
};
document.addEventListener("pointerover", e => sayValues(e.target.closest(".spot")));
document.addEventListener("focusout", e => e.target.matches("svg.chart") && sayValues());
addEventListener("scroll", () => sayValues(), { passive: true, capture: true });
document.addEventListener("keydown", e => {
  if (!e.target.matches("svg.chart")) return;
  const all = $$(".spot", e.target), at = all.indexOf(spot);
  const to = { ArrowRight: at + 1, ArrowLeft: at < 0 ? all.length - 1 : at - 1, Home: 0, End: all.length - 1 }[e.key];
  if (all[to]) { e.preventDefault(); sayValues(all[to]); }
  if (e.key === "Escape") sayValues();
  if (e.key === "Enter" && at >= 0) location.href = all[at].href?.baseVal || location.href;
});

// Keyboard: none of it works inside inputs or dialogs, nor where it is turned off.
let g = false, at = -1;
const go = { d: "/", o: "/orders", c: "/callbacks", n: "/notifications", e: "/exceptions" };
document.addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, textarea, select") || $("dialog[open]") || !$("#shortcuts")) return;
  if (g && go[e.key]) { location.href = go[e.key]; return; }
  g = e.key === "g";
  const rows = $$("tr[data-row]");
  if (e.key === "/" && $(".search input")) { e.preventDefault(); $(".search input").focus(); }
  const bar = $(".querybar input[name=q]");
  if (e.key === "f" && bar) {
    e.preventDefault();
    bar.focus();
    bar.setSelectionRange(bar.value.length, bar.value.length); // to go on with the filter
  }
  if (e.key === "?") $("#shortcuts").showModal();
  if (rows.length && (e.key === "j" || e.key === "k")) {
    at = Math.max(0, Math.min(rows.length - 1, at + (e.key === "j" ? 1 : -1)));
    rows[at].tabIndex = -1;
    rows[at].focus();
  }
  if (rows[at] && e.key === "Enter") $("a", rows[at])?.click();
  if (rows[at] && e.key === "x") $("input[name=row]", rows[at])?.click();
  if (rows[at] && e.key === "c") $("[data-copy]", rows[at])?.click();
  if (e.key === "]") $("[data-next]")?.click();
  if (e.key === "[") ($("[data-prev]") || $("[data-newest]"))?.click();
});

// A list never moves under the pointer: new rows are announced, and shown on
// request. Nothing is fetched while the tab is hidden or paused.
const newer = $("[data-newer]");
if (newer) {
  let timer, paused = false;
  const plan = () => { clearTimeout(timer); if (!paused && !document.hidden) timer = setTimeout(look, 10_000); };
  const look = async () => {
    try {
      const answer = await fetch(newer.dataset.newer, { headers: { "HX-Request": "true" } });
      if (answer.status === 401) return; // signed out: the next click leads to the login
      const t = document.createElement("template");
      if (answer.ok && !paused) {
        t.innerHTML = await answer.text();
        const old = $("a", newer), fresh = $("a", t.content);
        if (old && fresh) { if (old.textContent !== fresh.textContent) old.textContent = fresh.textContent; } // keeps its focus
        else newer.replaceChildren(t.content);
      }
    } catch {} // fetched again next time
    plan();
  };
  document.addEventListener("keydown", e => {
    if (e.key !== "p" || e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, textarea, select") || $("dialog[open]")) return;
    paused = !paused;
    newer.textContent = paused ? newer.dataset.paused : "";
    plan();
  });
  document.addEventListener("visibilitychange", () => document.hidden || paused ? plan() : look());
  plan();
}
