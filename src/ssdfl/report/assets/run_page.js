startCurves();
startDevices();
redraw();

byId("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(byId("command").textContent);
  byId("copy").textContent = "Copied";
});
byId("save").addEventListener("click", () => {
  const file = new Blob([byId("experiment").textContent], { type: "application/toml" });
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(file), download: "experiment.toml" });
  link.click();
  URL.revokeObjectURL(link.href);
});
