startCurves();
redraw();
