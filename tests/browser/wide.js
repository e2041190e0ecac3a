// What is wider than the window and stands in none of the BOXES that scroll, by the first of its text.
Array.from(document.querySelectorAll("body *"))
  .filter((one) => one.checkVisibility() && !one.closest("BOXES"))
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 0.5)
  .map((one) => one.textContent.slice(0, 60))
