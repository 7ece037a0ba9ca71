// Shows times in the reader's zone, and its name in their titles. Without scripts they are in UTC.
"use strict";

const inZone = (options) => new Intl.DateTimeFormat(undefined, { hourCycle: "h23", ...options });
const hm = { hour: "2-digit", minute: "2-digit" };
const zones = {
  clock: inZone({ second: "2-digit", ...hm }), minute: inZone(hm), hour: inZone({ day: "numeric", month: "short", ...hm }),
  moment: inZone({ dateStyle: "medium", timeStyle: "medium" }), title: inZone({ dateStyle: "medium", timeStyle: "long" }),
};

function showTimes(part) {
  for (const time of part.querySelectorAll("time[data-show][datetime]")) {
    const at = new Date(time.dateTime), show = time.dataset.show, far = Math.abs(Date.now() - at) > 20 * 3600e3;
    if (zones[show]) time.textContent = zones[show === "minute" && far ? "hour" : show].format(at);
    time.title = zones.title.format(at);
  }
}

showTimes(document);
