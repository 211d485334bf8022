// Runs before the page is painted, so that a chosen theme does not flash.
(function () {
  "use strict";
  var root = document.documentElement;
  root.setAttribute("data-script", "");
  try {
    var theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") root.setAttribute("data-theme", theme);
  } catch (e) { /* without storage the system's theme applies */ }
})();
