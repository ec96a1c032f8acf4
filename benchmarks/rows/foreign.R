# Numbers of R, with the data that they are of:  Rscript benchmarks/rows/foreign.R > benchmarks/rows/from_r.json
#
# genlasso and glmgen are on GitHub (glmgen/genlasso, glmgen/glmgen), lme4, quantreg, MASS and jsonlite on CRAN.
suppressMessages({library(genlasso); library(quantreg); library(lme4); library(MASS)})
packages <- c("genlasso", "glmgen", "quantreg", "lme4", "MASS")
versions <- setNames(lapply(packages, function(name) as.character(packageVersion(name))), packages)
versions$R <- as.character(getRversion())

# Trend filtering of the Nile's flow, even years, by a path of genlasso and by glmgen's ADMM run to its end.
y <- as.numeric(Nile)
nile <- lapply(1:3, function(k) {
  strength <- c(500, 5000, 20000)[k]
  ends <- glmgen::trendfilter.control.list(obj_tol = 1e-15, max_iter = 100000L)
  by_admm <- glmgen::trendfilter(seq_along(y), y, k = k, lambda = strength, thinning = FALSE, control = ends)
  by_path <- genlasso::trendfilter(y, ord = k, maxsteps = 10000)
  list(order = k, strength = strength, glmgen = as.numeric(by_admm$beta),
       genlasso = as.numeric(coef(by_path, lambda = strength)$beta))
})

# The same of mean accelerations at uneven times.
by_time <- aggregate(accel ~ times, mcycle, mean)
uneven <- lapply(1:2, function(k) {
  strength <- c(50, 50)[k]
  fit <- genlasso::trendfilter(by_time$accel, pos = by_time$times, ord = k, maxsteps = 10000)
  list(order = k, strength = strength, genlasso = as.numeric(coef(fit, lambda = strength)$beta),
       first = as.numeric(genlasso:::getDtfPosSparse(nrow(by_time), k, by_time$times)[1, ]))
})

# Graph trend filtering (Wang et al., 2016) of a coarse grid of heights of Maunga Whau: D'D and D D'D.
heights <- volcano[seq(1, 87, 8), seq(1, 61, 8)]
D <- as.matrix(getD2dSparse(nrow(heights), ncol(heights)))
edges <- t(apply(D, 1, function(row) c(which(row < 0), which(row > 0))))
grid <- lapply(1:2, function(k) {
  strength <- c(3, 1)[k]
  K <- if (k == 1) t(D) %*% D else D %*% t(D) %*% D
  at <- function(svd) as.numeric(coef(genlasso(as.numeric(heights), D = K, svd = svd, maxsteps = 10000), lambda = strength)$beta)
  list(order = k, strength = strength, qr = at(FALSE), svd = at(TRUE))
})
fused <- fusedlasso(as.numeric(heights), D = D, maxsteps = 10000)

# Crossed effects, at the variances that REML finds.
model <- lmer(diameter ~ 1 + (1 | plate) + (1 | sample), Penicillin, control = lmerControl(optCtrl = list(xtol_rel = 1e-12)))
effects <- ranef(model)
penicillin <- list(diameter = Penicillin$diameter, plate = as.character(Penicillin$plate),
                   sample = as.character(Penicillin$sample), variances = as.data.frame(VarCorr(model))$vcov,
                   mean = as.numeric(fixef(model)), plates = as.list(setNames(effects$plate[, 1], rownames(effects$plate))),
                   samples = as.list(setNames(effects$sample[, 1], rownames(effects$sample))))

# Quantile trend filtering.
smooth <- lapply(c(0.5, 0.9), function(tau) {
  fit <- rqss(accel ~ qss(times, lambda = 5), tau = tau, data = mcycle)
  list(tau = tau, lambda = 5, fit = as.numeric(predict(fit, data.frame(times = by_time$times))))
})

writeLines(jsonlite::toJSON(list(
  versions = versions,
  nile = list(y = y, fits = nile),
  mcycle = list(times = mcycle$times, accel = mcycle$accel, at = by_time$times, means = by_time$accel, uneven = uneven,
                rqss = smooth),
  volcano = list(heights = as.numeric(heights), edges = edges, fits = grid,
                 fused = list(strength = 5, qr = as.numeric(coef(fused, lambda = 5)$beta))),
  penicillin = penicillin
), digits = NA, auto_unbox = TRUE))
