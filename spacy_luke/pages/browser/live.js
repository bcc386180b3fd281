// The page of the service: a text that is typed is sent to be annotated, and what comes back is shown.

const byId = (id) => document.getElementById(id);

/** page.annotate: where to send it; page.asks: whether the pipeline answers questions; show: called with a form. */
export function startLive(page, show) {
  if (!page.annotate) return;
  const [form, typed, questions, said] = ["ask", "typed", "questions", "said"].map(byId);
  form.hidden = false;
  byId("asked").hidden = !page.asks;
  typed.maxLength = page.most;
  const button = form.querySelector("button");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    said.textContent = "Annotating …";
    try {
      const asked = page.asks ? questions.value.split("\n").filter((x) => x.trim()) : [];
      const document = { text: typed.value, questions: asked };
      const body = JSON.stringify({ documents: [document] });
      const headers = { "content-type": "application/json" };
      const reply = await fetch(page.annotate, { method: "POST", headers, body });
      const data = await reply.json();
      if (!reply.ok) throw new Error(data.error.message);
      if (data.documents[0].error) throw new Error(data.documents[0].error.message);
      show(data.documents[0]);
      said.textContent = "";
    } catch (error) {
      said.textContent = `That did not work: ${error.message}`;
    } finally {
      button.disabled = false;
    }
  });
  typed.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
}
