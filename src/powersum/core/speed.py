"""What each kind of work costs, in seconds: guesses for deciding beforehand what fits into the time that is left.

A guess that is wrong costs time or a chance, never a bound.
"""

from __future__ import annotations

ELIMINATION = 3e-9
"""For each table entry of exact bucket elimination, as a rule."""

WAY_BACK = 4e-9
"""The same for the way back, which finds the distributions of all variables."""

FRESH_MEMORY = 8e-9
"""For each number of an array that is written for the first time: the system has to find the memory. On a virtual
machine that takes longer than an entry of an elimination; elsewhere less."""

SLOW_ELIMINATION = 15e-9
"""The same at worst, for judging beforehand whether elimination is affordable."""

SLOW_EVALUATION = 1.0 / 7e7
"""For each table entry of the sum that an assignment leaves, at worst."""

TREE_PASS = 6e-9
"""For each table entry of a covering tree in a pass of its descent, at least: bound and all gradients in single
precision, the step, and its share of the evaluation in double precision that follows a few of them."""

FIRST_TREE_PASS = 10e-9
"""The same for the first pass, which nothing is known of yet."""

TREE_NODE = 0.5e-6
"""For each mini-bucket of a covering tree in a pass, whatever its size."""

TREE_BOX = 1e-5
"""For each mini-bucket of a covering tree that is made anew for fewer states."""

CORNER_TABLE, CORNER_ENTRY = 3e-6, 60e-9
"""For each table, and for each of its entries, of the corner bound."""

GROUP_ENTRY = 30e-9
"""For each entry that mini-buckets of the corner bound may have; most have fewer."""

VALUE_SHARE = 0.4
"""What a pass for the bound alone, in double precision, takes as a share of one with gradients in single precision."""

TABLE_COPY = 3e-9
"""For each table entry and input of the tables that a search reads off a tree."""

ANNEALING_LOOK = 10e-9
"""For each look into a table while all variables are annealed."""

DRAWING = 80e-9
"""For each number that is looked up while an assignment is drawn from a tree, the way to its place included."""

DRAWN_STATE = 30e-9
"""For each state that is drawn down a covering tree."""

SAMPLED_PAIR = 2e-9
"""For each pair of states that is counted to tell how far two mini-buckets are apart."""

CLAUSE_STEP = 2e-8
"""For each clause that is looked at while truth values are propagated."""

SETTING = 1e-6
"""For each variable that is set, or set otherwise, while zeros are propagated."""

REGION = 0.7e-6
"""For each variable and each factor of a region of local search, beside the entries of its tables."""

FILE_MEMBER, FILE_BYTE = 0.2e-3, 10e-9
"""For each array of a checkpoint, and for each of its bytes, to pack, write and read it back."""

SEARCH_STEP = 0.4e-6
"""For each step of branch and bound."""

ARC = 60e-9
"""For each arc of a partial sum."""

DECOMPOSED_SWEEP = 40e-9
"""For each table entry of the regions in a sweep of the decomposed bound."""

EXPECTATION = 10e-9
"""For each table entry in a round of variational updates, beside the sum over the core."""

ROUND = 2e-4
"""Of variational sums: what each round takes beside its tables."""

SINGLE_PASS = 50e-9
"""For each table entry of the bound by single factors."""

COST_SWEEP = 2e-9
"""For each table entry in a sweep of moving costs in whole numbers; where tables have three variables or more, for each
entry and pair of its table's variables."""

COST_NODE = 0.2e-6
"""For each variable at a node of the search that moves them."""

ORDERING_STEP = 2e-9
"""For each step of min-fill, as it counts its own work."""

BOUNDED_FILL_STEP = 1e-6
"""For each pair that is looked at in min-fill among tables of bounded size."""

DEGREE_STEP = 50e-9
"""For each variable and each of its neighbours in an order by minimum degree."""

TREE_BUILDING = 3e-5
"""For each variable, until a first covering tree of a very large model is there."""

COUNTING_NODE = 12e-6
"""For each variable that is set while a sum is found by conditioning."""

CIRCUIT_STEP = 2e-9
"""For each branch, and each of its parts and conditions, in a pass over a circuit of conditioning."""

LOOK_UP = 1e-5
"""What a state costs of a bound is read off the tables of one variable, in Python."""
