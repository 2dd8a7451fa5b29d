// Code and tables that scroll are reached by keyboard; the search and each bar of buttons, which the theme adds later, have names.
const name = () => {
  document.querySelectorAll("pre > code, .md-typeset__scrollwrap").forEach(each => { each.tabIndex = 0; });
  document.querySelectorAll(".md-search").forEach(each => each.setAttribute("aria-label", "Search"));
  document.querySelectorAll(".md-code__nav").forEach((each, at) => each.setAttribute("aria-label", `Code ${at + 1}`));
};
name();
new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
