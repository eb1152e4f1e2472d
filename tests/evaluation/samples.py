"""A treebank and predictions small enough to be scored by hand.

sentence                      gold set          predicted set     F1    strict
the dog barks now             (0,2) (2,4)       (0,2) (0,3)       1/2   1/2
go on there (unary top)       (0,3)             (0,2)             0     0, for gold is empty then
dogs bark                                                         1     not scored
a big cat (flat)                                (1,3)             0     0
yes                           not scored

sentence F1 (1/2 + 0 + 1 + 0) / 4 = 37.5; corpus F1 2 * 1 / (4 + 3) = 28.57; strict (1/2 + 0 + 0) / 3 = 16.67
"""

GOLD = """\
(S (NP (DT the) (NN dog)) (VP (VBZ barks) (RB now)) (. .))
(S (VP (VB go) (RB on) (RB there)) (. !))
(INTJ (UH yes) (. .))
(S (NP-SBJ (NNS dogs)) (VP (VBP bark)))
(NP (DT a) (JJ big) (NN cat))
"""
PREDICTED = """\
(N-1 (N-1 (N-1 (T-1 The)(T-1 dog))(T-1 barks))(T-1 now))
(N-1 (N-1 (T-1 Go)(T-1 on))(T-1 there))
(T-1 Yes)
(N-1 (T-1 Dogs)(T-1 bark))
(N-1 (T-1 A)(N-1 (T-1 big)(T-1 cat)))
"""
FLAT = "((the dog) (barks now))\n(go (on there))\nyes\n(dogs bark)\n(a big cat)\n"
CONLLU = """\
1\tthe\t_\tDET\tDT\t_\t2\tdet\t_\t_
2\tdog\t_\tNOUN\tNN\t_\t3\tnsubj\t_\t_
3\tbarks\t_\tVERB\tVBZ\t_\t0\troot\t_\t_
4\t.\t_\tPUNCT\t.\t_\t3\tpunct\t_\t_

1\tyes\t_\tINTJ\tUH\t_\t0\troot\t_\t_

"""
