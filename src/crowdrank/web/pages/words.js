// The words of the page in one language, from its file; what a file lacks is said in English.

const KNOWN = ["en", "de", "es", "fr", "zh", "ar"];
const RIGHT_TO_LEFT = ["ar"];
let words = {};

async function file(language) {
  const answer = await fetch(`/static/words-${language}.json`);
  return answer.ok ? answer.json() : {};
}

// the campaign's language, otherwise the first of the browser's that there is a file of
export async function speak(wanted) {
  const asked = wanted ? [wanted] : navigator.languages ?? [navigator.language];
  const language = asked.map((one) => one.toLowerCase().split("-")[0]).find((one) => KNOWN.includes(one)) ?? "en";
  if (words.language === language) return;
  const [english, own] = await Promise.all([file("en"), language === "en" ? {} : file(language)]);
  words = { ...english, ...own, language };
  document.documentElement.lang = language;
  document.documentElement.dir = RIGHT_TO_LEFT.includes(language) ? "rtl" : "ltr";
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const node of document.querySelectorAll("[data-label]")) node.setAttribute("aria-label", t(node.dataset.label));
}

export function t(key, given = {}) {
  return (words[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => String(given[name] ?? ""));
}

// a question of the owner's stays as it is; one that no owner wrote is asked in the language of the page
export const question = (text) => words[text] ?? text;

export function when(microseconds) {
  return new Date(microseconds / 1000).toLocaleString(words.language, { dateStyle: "medium", timeStyle: "short" });
}
