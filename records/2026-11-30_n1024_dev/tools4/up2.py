from upper import *
for j0 in (0,192):
    for amp in (300.,200.,150.,100.,60.):
        E,p,info=run(2000,2,j0,amp)
        mx=E.max(1); print(j0,amp,'passes',p.mean().round(3),'worst',np.sort(mx)[-4:].round(2),'q',np.quantile(mx,[.5,.9,.99,.999]).round(3),flush=True)
