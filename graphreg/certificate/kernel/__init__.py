"""The one place where bounds are made: anything may propose, what stands here verifies.

It imports nothing that proposes. A proposal is prices and flows, how a small imbalance would be taken up, and how large
each correction may be (`balance`); or weights by which all variables take it up together (`joint`); or parameters
near which squares absorb it (`squares`). Each proves a box that holds an exactly balanced point, over which the dual
value is bounded (`value`), every rounding paid (`arithmetic`).
"""
