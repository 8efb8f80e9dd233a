// The palette leads to pages, acts, orders and others by their names. The server finds them; the
// arrows choose, Enter opens. It changes nothing itself: acts begin where their pages ask for them.
{
  const palette = $("#palette"), input = $("input", palette), hits = $("#hits"), status = $("[role=status]", palette);
  let timer, asked = 0, shown = null, opens = false; // shown: the text that the options are for
  let chosen = null; // by the arrows: it stays marked when what was found since comes
  const text = () => input.value.trim();
  const options = () => $$("[role=option]", hits);

  const mark = to => {
    for (const o of options()) o.setAttribute("aria-selected", o === to);
    if (!to) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", to.id);
    to.scrollIntoView({ block: "nearest" });
  };
  const nameOf = o => o?.getAttribute("href") ?? o?.textContent;
  const marked = () => options().find(o => o.getAttribute("aria-selected") === "true");

  // What this page's own buttons offer, by the words on them.
  const here = words => {
    const group = document.createElement("div"), name = document.createElement("div");
    group.setAttribute("role", "group");
    group.setAttribute("aria-labelledby", name.id = "hits-here");
    name.setAttribute("aria-hidden", "true");
    group.append(Object.assign(name, { className: "of", textContent: palette.dataset.here }));
    for (const b of $$("main [data-open]:not(:disabled)")) {
      const label = b.textContent.trim().replace(/\s+/g, " ");
      if (!label || !b.getClientRects().length || b.closest("table, dialog") || !words.every(w => label.toLowerCase().includes(w))) continue;
      if ($(`a[href="${CSS.escape(location.pathname + b.dataset.open.replace("#", "#open-"))}"]`, hits)) continue; // by its own name
      const o = document.createElement("div");
      o.id = "hit-here-" + group.children.length;
      o.setAttribute("role", "option");
      o.setAttribute("aria-selected", "false");
      const icon = $("svg", b)?.cloneNode(true);
      o.append(...icon ? [icon] : [], Object.assign(document.createElement("span"), { textContent: label }));
      o.opens = b;
      group.append(o);
    }
    if (group.children.length > 1) hits.prepend(group);
  };

  const look = async () => {
    const mine = ++asked, q = text();
    let found = "";
    try {
      const answer = await fetch("/search?palette=1&q=" + encodeURIComponent(q), { headers: { "HX-Request": "true" } });
      if (answer.status === 401) return location.assign("/login");
      if (answer.ok) found = await answer.text();
    } catch {} // Enter then leads to the page of the search
    if (mine !== asked) return;
    if (q === text()) hits.removeAttribute("aria-busy");
    hits.innerHTML = found;
    here(q.toLowerCase().split(/\s+/));
    const all = options();
    shown = q;
    hits.hidden = !all.length;
    input.setAttribute("aria-expanded", String(all.length > 0));
    status.textContent = palette.dataset.found.replace("#", all.length);
    mark(q ? all.find(o => nameOf(o) === chosen) ?? all[0] : null);
    if (opens) go();
  };

  const go = () => {
    const to = marked() ?? (opens ? options()[0] : null);
    opens = false;
    if (to) to.click();
    else if (text()) input.form.submit();
  };

  const show = () => {
    input.value = status.textContent = "";
    hits.replaceChildren();
    hits.hidden = true;
    shown = chosen = null;
    opens = false;
    palette.showModal();
    input.focus();
    look();
  };

  palette.addEventListener("close", () => {
    if (palette.open) return; // a quick hand: the event comes after the palette is open again
    clearTimeout(timer);
    asked++;
  });
  palette.addEventListener("click", e => { if (e.target === palette) palette.close(); });
  input.addEventListener("input", () => {
    opens = false;
    chosen = null;
    hits.setAttribute("aria-busy", "true"); // the options are still those of the previous text
    clearTimeout(timer);
    timer = setTimeout(look, 120);
  });
  input.addEventListener("keydown", e => {
    if (e.isComposing) return;
    const all = options(), at = all.indexOf(marked());
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      if (all.length) mark(all[(at + (e.key === "ArrowDown" ? 1 : at < 0 ? 0 : -1) + all.length) % all.length]);
      chosen = nameOf(marked());
    } else if (e.key === "Enter") {
      e.preventDefault();
      if (shown === text()) return go();
      opens = true; // once what is typed has been looked for
      clearTimeout(timer);
      look();
    }
  });

  // The opener of a dialog is pressed as by hand, so that it has the focus again afterwards.
  const pressOpener = opener => { opener?.focus(); opener?.click(); };

  // A link with #open- opens a dialog, as the page's own button does, or a fold. No element has
  // that id: otherwise the browser would take the focus away again once the page is there.
  const reveal = hash => {
    const to = document.getElementById(hash.replace(/^#(open-)?/, ""));
    if (!to) return;
    if (to.matches("input, select, textarea, button")) to.focus();
    if (!hash.startsWith("#open-")) return;
    if (to.matches("dialog")) pressOpener($(`main [data-open="#${CSS.escape(to.id)}"]:not(:disabled)`));
    if (to.matches("details")) {
      to.open = true;
      $("summary", to).focus();
    }
  };

  document.addEventListener("click", e => {
    const opener = e.target.closest("[data-palette]"), to = e.target.closest("[role=option], [data-press]");
    if (e.ctrlKey || e.metaKey || e.shiftKey) return; // into another window
    if (opener) {
      e.preventDefault();
      show();
    } else if (to && (hits.contains(to) || to.dataset.press)) {
      const before = location.href;
      palette.close();
      if (to.opens || to.dataset.press) {
        e.preventDefault();
        if (to.opens) pressOpener(to.opens);
        else $(to.dataset.press)?.click();
      } else if (to.href === before && to.hash) {
        e.preventDefault();
        reveal(to.hash);
      }
    }
  });
  document.addEventListener("keydown", e => {
    if (e.key?.toLowerCase() !== "k" || e.altKey || e.shiftKey || e.ctrlKey === e.metaKey) return;
    if (!palette.open && $("dialog[open]")) return;
    e.preventDefault();
    if (palette.open) palette.close();
    else show();
  });
  addEventListener("hashchange", () => reveal(location.hash));
  reveal(location.hash);
}
