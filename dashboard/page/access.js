// What changes something needs the admin token. The page keeps it in memory
// and nowhere else, and shows no button that would need it before.

import { attr, byId, text } from "./dom.js";

const toastFor = 6000; // ms

export class Access {
  token = "";
  constructor(changed) {
    this.changed = changed;
    const dialog = byId("access"), field = byId("access-token");
    byId("unlock").addEventListener("click", () => (this.token ? this.lock() : dialog.showModal()));
    byId("access-cancel").addEventListener("click", () => dialog.close());
    byId("access-form").addEventListener("submit", (e) => {
      e.preventDefault();
      this.token = field.value.trim();
      dialog.close();
      this.show();
    });
    dialog.addEventListener("close", () => (field.value = ""));
  }

  lock() {
    this.token = "";
    this.show();
  }

  show() {
    text(byId("unlock"), this.token ? "Lock again" : "Read only");
    attr(byId("unlock"), "aria-haspopup", this.token ? null : "dialog");
    this.changed();
  }

  // change posts to path and says what became of it.
  async change(path, done) {
    try {
      const answer = await fetch(path, { method: "POST", headers: { Authorization: "Bearer " + this.token } });
      if (answer.ok) return this.say(done, false);
      const { error } = await answer.json();
      if (answer.status === 401 || answer.status === 403) this.lock();
      this.say(error.message, true);
    } catch {
      this.say("Pacer did not answer; nothing is known to have changed.", true);
    }
  }

  say(words, bad) {
    const toast = byId("toast");
    text(toast, words);
    attr(toast, "class", bad ? "toast bad" : "toast");
    attr(toast, "hidden", false);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => attr(toast, "hidden", true), toastFor);
  }
}
