// The console's own behaviour: theme, keys, filter, copying, plots. Everything can be read without it.
(function () {
  "use strict";
  var root = document.documentElement;

  function all(selector, within) { return Array.prototype.slice.call((within || document).querySelectorAll(selector)); }

  // --- theme

  function dark() {
    var chosen = root.getAttribute("data-theme");
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function switchTheme() {
    var theme = dark() ? "light" : "dark";
    root.setAttribute("data-theme", theme);
    try { localStorage.setItem("theme", theme); } catch (e) { /* it lasts for this page */ }
    drawPlots();
  }

  // --- keys

  var places = { f: "fleet", r: "find", l: "letters", a: "audit", d: "doctor" };
  var waiting = false; // for the second key of "g"

  function typing(target) { return target.closest && target.closest("input, textarea, select, [contenteditable]"); }

  function stops() {
    return all("[data-stop]").filter(function (e) { return e.offsetParent !== null || e.getClientRects().length > 0; });
  }

  function move(by) {
    var list = stops();
    if (list.length === 0) return;
    var at = list.indexOf(document.activeElement);
    var to = at < 0 ? (by > 0 ? 0 : list.length - 1) : Math.min(list.length - 1, Math.max(0, at + by));
    list[to].focus();
    list[to].scrollIntoView({ block: "nearest" });
  }

  function press(selector) {
    var element = document.querySelector(selector);
    if (element) element.click();
    return element !== null;
  }

  function help() {
    var dialog = document.getElementById("keys");
    if (dialog.open) dialog.close(); else dialog.showModal();
  }

  function key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return;
    if (e.key === "Escape" && typing(e.target)) { e.target.blur(); return; }
    if (typing(e.target)) return;
    if (waiting) {
      waiting = false;
      if (places[e.key] && press('[data-place="' + places[e.key] + '"]')) e.preventDefault();
      return;
    }
    switch (e.key) {
      case "j": move(1); break;
      case "k": move(-1); break;
      case "g": waiting = true; setTimeout(function () { waiting = false; }, 1500); break;
      case "?": help(); break;
      case "t": switchTheme(); break;
      case "/":
        var field = document.querySelector("[data-filter], [data-search]");
        if (field) { field.focus(); field.select(); } else press('[data-place="find"]');
        break;
      default:
        if (!/^[a-z]$/.test(e.key) || !press('[data-key="' + e.key + '"]')) return;
    }
    e.preventDefault();
  }

  // --- the filter of the fleet, which hides rows at once; the server filters for those without script

  function filter() {
    if (!document.querySelector("[data-filter]")) return;
    var words = wanted();
    var shown = 0;
    all("[data-row]").forEach(function (row) { if (fits(row, words)) shown++; });
    all("[data-group]").forEach(function (body) {
      var head = body.querySelector(".group");
      if (head) head.hidden = !body.querySelector("[data-row]:not([hidden])");
    });
    var count = document.getElementById("shown");
    if (count) count.textContent = shown;
  }

  function wanted() {
    var field = document.querySelector("[data-filter]");
    return field ? field.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
  }

  function fits(row, words) {
    var text = row.getAttribute("data-row");
    var fit = words.every(function (word) { return text.indexOf(word) >= 0; });
    if (row.hidden === fit) row.hidden = !fit;
    return fit;
  }

  // --- live parts

  // A row that the filter hides stays hidden when it is replaced.
  function keep(fresh) {
    var words = wanted();
    if (words.length > 0) all("[data-row]", fresh).forEach(function (row) { fits(row, words); });
  }

  // What is open stays open when a part is replaced, with what was chosen and typed in it.
  function stayOpen(e) {
    var fresh = e.detail.fragment;
    all("details[open][id]", e.detail.target).forEach(function (details) {
      var same = fresh && fresh.querySelector("#" + CSS.escape(details.id));
      if (!same) return;
      same.open = true;
      all("input:not([type=hidden])", details).forEach(function (field) {
        var kin = same.querySelector(kinOf(field));
        if (!kin) return;
        if (field.type === "radio") kin.checked = field.checked;
        else kin.value = field.value;
        if (field === document.activeElement) typedIn = "#" + CSS.escape(details.id) + " " + kinOf(field);
      });
    });
  }

  // What is typed as a place chooses its kind.
  function choose(field) {
    var label = field.matches('input[type="text"]') && field.closest("label");
    var radio = label && label.querySelector('input[type="radio"]');
    if (radio) radio.checked = true;
  }

  var typedIn = ""; // selects the field that had the focus before its part was replaced

  function typeOn() {
    var field = typedIn && document.querySelector(typedIn);
    typedIn = "";
    if (field) field.focus({ preventScroll: true });
  }

  function kinOf(field) {
    var name = 'input[name="' + CSS.escape(field.name) + '"]';
    return field.type === "radio" ? name + '[value="' + CSS.escape(field.value) + '"]' : name;
  }

  // Rows have nothing for htmx, so they are replaced without it. Those that the page does not have come with its table.
  function patch(text) {
    var fresh = document.createElement("template");
    fresh.innerHTML = text;
    keep(fresh.content);
    all("[data-row]", fresh.content).forEach(function (row) {
      var old = document.getElementById(row.id);
      if (!old) return;
      var focused = old.contains(document.activeElement) ? document.activeElement.id : "";
      old.replaceWith(row);
      if (focused) document.getElementById(focused).focus({ preventScroll: true });
    });
  }

  // A button whose part is replaced under the pressed pointer is not clicked: messages wait for the end of the press, and
  // no longer than five seconds, since not every system tells that a menu was closed.
  var pressed = 0, late = []; // a timer, and the messages

  function hold(e) {
    if (e.button !== 0) return;
    clearTimeout(pressed);
    pressed = setTimeout(release, 5000);
  }

  function release() {
    setTimeout(function () { // after the click
      clearTimeout(pressed);
      pressed = 0;
      late.splice(0).forEach(function (message) { message.source.dispatchEvent(new MessageEvent(message.type, { data: message.data })); });
    });
  }

  // --- plots

  var plots = [];

  function colour(element, name) {
    var probe = document.createElement("span");
    probe.className = name;
    element.appendChild(probe);
    var value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  }

  function short(value) {
    if (value === null || value === undefined) return "–";
    if (value >= 1e6) return (value / 1e6).toFixed(1) + "M";
    if (value >= 1e4) return (value / 1e3).toFixed(1) + "k";
    return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : String(Math.round(value * 100) / 100);
  }

  // A value between two gaps is in no line: it is drawn as a point.
  function alone(u, i) {
    var values = u.data[i];
    return values.reduce(function (list, v, at) {
      var before = at > 0 && values[at - 1] !== null, after = at + 1 < values.length && values[at + 1] !== null;
      return v !== null && !before && !after ? list.concat(at) : list;
    }, []);
  }

  function clock(seconds) { return new Date(seconds * 1000).toISOString().slice(11, 19); }

  function draw(plot) {
    var element = plot.element, ink = colour(element, "axis"), grid = colour(element, "grid");
    var line = getComputedStyle(element).color;
    var unit = element.getAttribute("data-unit");
    var axis = { stroke: ink, font: "12px " + getComputedStyle(element).fontFamily, grid: { stroke: grid, width: 1 }, ticks: { show: false } };
    if (plot.chart) plot.chart.destroy();
    plot.chart = new uPlot({
      width: Math.max(200, element.clientWidth), height: 170, padding: [10, 6, 0, 0],
      cursor: { points: { size: 7 }, drag: { x: false, y: false } },
      legend: { live: true },
      scales: { y: { range: function (u, min, max) { return [0, max > 0 ? max * 1.15 : 1]; } } },
      axes: [Object.assign({ space: 70, size: 30, values: function (u, list) { return list.map(clock); } }, axis), Object.assign({ size: 52, values: function (u, list) { return list.map(short); } }, axis)],
      series: [
        { label: "at", value: function (u, t) { return t === null ? "–" : clock(t); } },
        { label: element.getAttribute("data-label"), stroke: line, width: 1.6, fill: line.replace("rgb(", "rgba(").replace(")", ", .12)"),
          points: { show: false, filter: alone, size: 4, fill: line }, value: function (u, v) { return short(v) + " " + unit; } }
      ]
    }, plot.data, element);
  }

  function drawPlots() { plots.forEach(draw); }

  function fill(series) {
    all("[data-plot]").forEach(function (element) {
      var data = [series.at, series[element.getAttribute("data-plot")]];
      if (!data[0] || !data[1]) return;
      var plot = plots.filter(function (p) { return p.element === element; })[0];
      if (plot) { plot.data = data; plot.chart.setData(data); return; }
      plot = { element: element, data: data };
      plots.push(plot);
      draw(plot);
    });
  }

  // --- copying

  // A page that came over http from another machine has no clipboard: then the text is selected.
  function copy(button, from) {
    if (navigator.clipboard) {
      navigator.clipboard.writeText(from.textContent).then(function () { say(button, "copied"); });
      return;
    }
    getSelection().selectAllChildren(from);
    say(button, "selected");
  }

  function say(button, text) {
    button.textContent = text;
    setTimeout(function () { button.textContent = "copy"; }, 1600);
  }

  // --- at the start

  document.addEventListener("keydown", key);
  document.addEventListener("input", function (e) {
    if (e.target.matches("[data-filter]")) filter();
    choose(e.target);
  });
  document.addEventListener("pointerdown", hold);
  ["pointerup", "pointercancel"].forEach(function (end) { document.addEventListener(end, release); });
  document.addEventListener("change", function (e) {
    if (e.target.closest("[data-at-once]")) e.target.form.requestSubmit();
    if (e.target.matches("[data-all]")) {
      all('input[type="checkbox"][name="letter"]', e.target.form || document).forEach(function (box) { box.checked = e.target.checked; });
    }
  });
  document.addEventListener("click", function (e) {
    var target = e.target.closest("[data-theme-switch], [data-help], [data-copy], [data-close]");
    if (!target) return;
    if (target.hasAttribute("data-theme-switch")) switchTheme();
    if (target.hasAttribute("data-help")) help();
    if (target.hasAttribute("data-close")) {
      var panel = document.getElementById("decision");
      if (panel) { panel.replaceChildren(); e.preventDefault(); }
    }
    if (target.hasAttribute("data-copy")) {
      copy(target, document.getElementById(target.getAttribute("data-copy")));
    }
  });
  document.addEventListener("htmx:oobBeforeSwap", stayOpen);
  document.addEventListener("htmx:oobAfterSwap", typeOn);
  // A browser opens few connections to one host: a page that nobody sees gives its own back.
  var source = null;
  htmx.createEventSource = function (url) { source = new EventSource(url); return source; };
  document.addEventListener("visibilitychange", function () {
    if (!source) return;
    if (document.hidden) {
      source.close();
      root.removeAttribute("data-live");
    } else if (source.readyState === EventSource.CLOSED) {
      source.onerror(new Event("error"));
    }
  });
  document.addEventListener("htmx:sseOpen", function () { root.setAttribute("data-live", "on"); });
  document.addEventListener("htmx:sseError", function () { root.setAttribute("data-live", "lost"); });
  document.addEventListener("htmx:sseBeforeMessage", function (e) {
    if (pressed) late.push({ source: e.detail.target, type: e.detail.type, data: e.detail.data });
    else if (e.detail.type === "series") fill(JSON.parse(e.detail.data));
    else if (e.detail.type === "rows") patch(e.detail.data);
    else return;
    e.preventDefault();
  });
  // A refusal has a page of its own: it is shown where the answer would be.
  document.addEventListener("htmx:beforeSwap", function (e) {
    if (e.detail.xhr.status >= 400) { e.detail.shouldSwap = true; e.detail.isError = false; }
  });
  document.addEventListener("htmx:afterSwap", function (e) {
    var into = e.detail.target;
    if (into && into.id === "fleet-table") filter();
    if (!into || into.id !== "decision") return;
    var panel = document.getElementById("decision");
    panel.scrollIntoView({ block: "nearest" });
    var first = panel.querySelector("textarea, [data-first]");
    if (first) first.focus();
  });
  var first = document.getElementById("series");
  if (first) fill(JSON.parse(first.textContent));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawPlots);
  var resizing;
  addEventListener("resize", function () { clearTimeout(resizing); resizing = setTimeout(drawPlots, 150); });
  filter();
  root.setAttribute("data-ready", "");
})();
