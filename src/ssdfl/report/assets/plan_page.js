redraws.push(() => showPlan(data));
redraw();
