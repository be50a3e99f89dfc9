mk0(){ python3 mk.py $1 $2 && sh cx.sh $1 0; }
mk1(){ python3 mk.py $1 $2 && sh cx.sh $1 1; }
mk(){ python3 mk.py $1 $2 && sh cx.sh $1 0 && sh cx.sh $1 1; }
L=xl.larft,xg.exchange
S=xl.larft,xg.exchange,xg.select,xi.form,xi.large
N=xl.larft,xg.exchange,xi.form,xi.large
W=xl.larft,xg.select,xi.form,xi.large,xw.t_tiles
O=$W,xw.own
V=xl.larft,xi.form,xi.large,xw.t_tiles
Z=xb.gram,xc.loop
X=xz.alone,xz.cut,xz.const
Y=$W,$Z,xs.upd,xs.wprod,xs.lo2
K=$X,xz.uni,xz.tail
