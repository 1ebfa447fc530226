// What is easier with a script. Every page works without it.
"use strict";

// A form that spends is sent once.
for (const form of document.querySelectorAll("form.once")) {
  form.addEventListener("submit", () => {
    for (const button of form.querySelectorAll("button")) button.disabled = true;
  });
}
addEventListener("pageshow", () => {
  for (const button of document.querySelectorAll("form.once button")) button.disabled = false;
});

// The list of mistakes is read first.
document.getElementById("mistakes")?.focus();

// Sliders beside numbers, by powers of ten, and a forecast that follows them.
const settings = document.getElementById("settings");
const forecast = document.getElementById("forecast");
let waiting = 0;
let asked = 0;

async function foresee() {
  const mine = ++asked;
  const query = new URLSearchParams(new FormData(settings));
  query.delete("form-token");
  const answer = await fetch(`${settings.dataset.forecast}?${query}`, { credentials: "same-origin" });
  if (mine === asked && answer.ok) forecast.innerHTML = await answer.text();
}

function follow() {
  clearTimeout(waiting);
  waiting = setTimeout(() => foresee().catch(() => {}), 250);
}

function twoDigits(value, whole) {
  const rounded = Number(value.toPrecision(2));
  return String(whole ? Math.max(1, Math.round(rounded)) : rounded);
}

for (const field of document.querySelectorAll("[data-slider]")) {
  const [low, high] = field.dataset.slider.split(" ").map((end) => Math.log10(Number(end)));
  const slider = document.createElement("input");
  Object.assign(slider, { type: "range", min: low, max: high, step: 0.01 });
  slider.value = Math.log10(Number(field.value) || 1000);
  slider.setAttribute("aria-label", field.labels[0].textContent);
  const say = () => slider.setAttribute("aria-valuetext", field.value);
  slider.addEventListener("input", () => {
    field.value = twoDigits(10 ** Number(slider.value), field.inputMode === "numeric");
    say();
    follow();
  });
  field.addEventListener("input", () => {
    if (Number(field.value) > 0) slider.value = Math.log10(Number(field.value));
    say();
    follow();
  });
  say();
  field.after(slider);
}

// Live progress; the page is loaded anew when the fit has ended.
const running = document.getElementById("running");

async function watch() {
  const answer = await fetch(running.dataset.progress, { credentials: "same-origin" });
  if (!answer.ok) return;
  const now = await answer.json();
  if (now.state !== "running") {
    location.replace(location.pathname);
    return;
  }
  if (!now.planned) return;
  const bar = document.getElementById("progress");
  const last = now.last ? `; the last: ${now.last}` : "";
  bar.max = now.planned;
  bar.value = now.made;
  const words = `${now.made} of ${now.planned} releases made${last}`;
  const place = document.getElementById("progress-words");
  if (place.textContent !== words) place.textContent = words;
}

if (running) setInterval(() => watch().catch(() => {}), 700);
