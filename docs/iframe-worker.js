// The site's search runs in a worker, and a page opened from a folder may have none: there a hidden frame does its work.
// The theme would load such a stand-in from elsewhere, which a site that works offline must not.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      const load = (script) => new Promise((done, failed) => {
        const element = inside.document.createElement("script");
        element.src = script;
        element.onload = done;
        element.onerror = () => failed(new Error("cannot load " + script));
        inside.document.head.append(element);
      });
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...scripts) => scripts.reduce((before, script) => before.then(() => load(script)), Promise.resolve());
      this.inside = load(new URL(address, document.baseURI).href).then(() => inside);
    }

    /** What is sent before the script is there waits for it. */
    postMessage(data) {
      this.inside.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
