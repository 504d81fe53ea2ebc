"""Questions divided into boxes: some states of some variables, with bounds, a witness and a proof of their own."""
